"""The map: what an address is, where a node's addresses are, and what the legend leaves."""

from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import expect

from dashboard.browser.conftest import Visit
from dashboard.browser.page_visit import PageVisit
from page_stage.dashboard_process import DashboardProcess
from page_stage.drawn_fleet import DrawnFleet, DrawnSubnet
from page_stage.living_cluster import ClusterPlan, LivingCluster

SUBNET = "#/subnets/pods"
_SEEN = 100
"""Pixels."""


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """Three nodes with ten pods each, in a /24, and nothing that happens."""
    with LivingCluster(tmp_path_factory.mktemp("cluster"), ClusterPlan(speed=4)) as living:
        for node in ("node-1", "node-2", "node-3"):
            living.add_pods(node, 10)
        living.settle()
        with DashboardProcess(living.kubeconfig, "--allocator", living.allocator_url) as running:
            yield running


@pytest.fixture
def visited(dashboard: DashboardProcess, visit: Visit) -> PageVisit:
    """The map, with all that is on it."""
    visited = visit(dashboard.url)
    visited.open_live(SUBNET)
    expect(visited.page.locator('[data-legend="pod"] .number')).to_have_text("30")
    return visited


def walk_to(visited: PageVisit, state: str) -> None:
    """Move the cursor by keys to the first address in a state."""
    visited.map.focus()
    for _ in range(256):
        visited.page.keyboard.press("ArrowRight")
        if visited.readout.locator(".state-name").inner_text() == state:
            return
    raise AssertionError(f"no address is {state}")


def colours(visited: PageVisit) -> set[object]:
    """The colours on the map, each on a part of it that can be seen."""
    picture = Image.open(BytesIO(visited.map.locator("canvas").screenshot())).convert("RGB")
    return {colour for count, colour in picture.getcolors(1 << 16) or [] if count > _SEEN}


def test_the_pointer_on_an_address_tells_address_node_and_pod(visited: PageVisit) -> None:
    walk_to(visited, "on a pod")
    box = visited.page.locator(".map-cursor").bounding_box()
    assert box is not None
    visited.page.keyboard.press("Escape")
    expect(visited.readout).to_be_hidden()
    visited.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(visited.readout).to_contain_text("10.1.0.")
    expect(visited.readout).to_contain_text("node-")
    expect(visited.readout).to_contain_text("default/pod-")


def test_a_click_on_an_address_lights_up_its_node_and_another_click_lets_go(visited: PageVisit) -> None:
    walk_to(visited, "on a pod")
    before = visited.map.screenshot()
    visited.page.keyboard.press("Enter")
    lit = visited.page.locator("[data-lit]")
    expect(lit).to_contain_text("node-")
    expect(visited.page.locator('[data-legend="pod"] .number')).to_have_text("10")
    assert visited.map.screenshot() != before
    visited.page.get_by_role("button", name="Show all nodes").click()
    expect(lit).to_have_count(0)
    expect(visited.page.locator('[data-legend="pod"] .number')).to_have_text("30")


def test_a_node_that_is_chosen_in_the_table_is_told_with_its_addresses_and_pods(visited: PageVisit) -> None:
    visited.go("#/nodes")
    visited.page.locator('[data-node="node-2"]').get_by_role("link").click()
    panel = visited.page.locator('[data-node-panel="node-2"]')
    expect(panel.get_by_text("default/pod-").first).to_be_visible()
    expect(panel.get_by_text("10.1.0.").first).to_be_visible()


def test_a_state_that_the_legend_switches_off_is_dimmed(visited: PageVisit) -> None:
    before = colours(visited)
    visited.page.locator('[data-legend="pod"]').click()
    expect(visited.page.locator('[data-legend="pod"]')).to_have_attribute("aria-pressed", "false")
    expect(visited.page.get_by_role("button", name="show all")).to_be_visible()
    assert colours(visited) != before
    visited.page.get_by_role("button", name="show all").click()
    expect(visited.page.locator('[data-legend="pod"]')).to_have_attribute("aria-pressed", "true")
    assert colours(visited) == before


def test_a_subnet_of_eight_bits_is_shown_by_utilization_and_looked_into(
    visit: Visit, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wide = DrawnSubnet("wide", "10.0.0.0/8", 40, 30)
    with (
        DrawnFleet(tmp_path_factory.mktemp("wide"), [wide]) as drawn,
        DashboardProcess(drawn.kubeconfig) as running,
    ):
        visited = visit(running.url)
        visited.may_fail = True
        visited.open_live("#/subnets/wide")
        visited.map.focus()
        visited.page.keyboard.press("ArrowRight")
        expect(visited.readout).to_contain_text("10.0.0.0/24")
        expect(visited.readout).to_contain_text("of 256 in use")
        visited.page.keyboard.press("Enter")
        expect(visited.page.locator("[data-zoomed]")).to_contain_text("10.0.0.0/24")
        expect(visited.page.locator("[data-zoomed] [data-legend='idle'] .number")).not_to_have_text("0")
