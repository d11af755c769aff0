"""A cluster of 5,000 nodes: the page shows it, and stays usable."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from dashboard.browser.conftest import Visit
from dashboard.browser.page_visit import PageVisit
from page_stage.dashboard_process import DashboardProcess
from page_stage.drawn_fleet import LARGE, DrawnFleet

NODES = sum(subnet.nodes for subnet in LARGE)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrawnFleet]:
    """5,000 nodes that state 150,000 pods."""
    with DrawnFleet(tmp_path_factory.mktemp("fleet"), LARGE) as drawn:
        yield drawn


@pytest.fixture(scope="module")
def dashboard(fleet: DrawnFleet) -> Iterator[DashboardProcess]:
    with DashboardProcess(fleet.kubeconfig) as running:
        yield running


@pytest.fixture
def visited(dashboard: DashboardProcess, visit: Visit) -> PageVisit:
    visited = visit(dashboard.url)
    visited.may_fail = True  # there is no allocator to tell a history
    return visited


def test_every_node_is_counted_and_any_can_be_found(visited: PageVisit) -> None:
    page = visited.open_live("#/nodes")
    expect(page.locator("[data-node-count]")).to_contain_text("5000 nodes")
    assert page.locator("[data-node]").count() < 200, "only those that can be seen are in the document"
    page.get_by_role("searchbox").fill("west-1234")
    expect(page.locator('[data-node="west-1234"]')).to_be_visible()


def test_one_node_that_changes_is_one_row_that_changes(visited: PageVisit, fleet: DrawnFleet) -> None:
    page = visited.open_live("#/nodes")
    page.get_by_role("searchbox").fill("south-0042")
    row = page.locator('[data-node="south-0042"]')
    expect(row).to_be_visible()
    fleet.state_demand("south-0042", 73)
    expect(row).to_contain_text("73")


def test_a_map_of_sixteen_bits_is_drawn_and_a_node_lights_up(visited: PageVisit) -> None:
    page = visited.open_live("#/subnets/east")
    expect(visited.map).to_be_visible()
    expect(page.locator('[data-legend="primary"] .number')).to_have_text("1250")
    expect(page.locator('[data-legend="idle"]')).to_contain_text("held by a node")
    expect(page.locator('[data-legend="pod"]')).to_have_count(0)
    visited.map.focus()
    while "east-0000" not in visited.readout.inner_text():
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("[data-lit]")).to_contain_text("east-0000")
    expect(page.locator('[data-legend="pod"]')).to_be_visible()
    expect(page.locator('[data-legend="idle"]')).to_contain_text("idle on a node")
