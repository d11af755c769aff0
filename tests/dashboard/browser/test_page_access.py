"""The page for everybody: by keyboard alone, by screen readers (as far as axe can tell), light and dark, on narrow screens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from dashboard.browser.conftest import Visit
from dashboard.browser.page_visit import PageVisit, Theme
from page_stage.dashboard_process import DashboardProcess
from page_stage.living_cluster import ClusterPlan, LivingCluster
from podtide.simulation.nodes.network_definitions import definitions

TABS = ("subnets", "nodes", "waiting", "decisions", "networks", "health")
VIEWS = (*(f"#/{tab}" for tab in TABS), "#/subnets/pods", "#/subnets/pods/nodes/node-1", "#/nodes/node-2")


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A subnet with more pods than addresses, and secondary networks: something is to be seen in every view."""
    plan = ClusterPlan(cidr="10.1.0.0/27", networks=definitions(2, nodes=3), speed=4)
    with LivingCluster(tmp_path_factory.mktemp("cluster"), plan) as living:
        for node in plan.nodes:
            living.add_pods(node, 10)
        with DashboardProcess(living.kubeconfig, "--allocator", living.allocator_url) as running:
            yield running


def show_one_after_the_other(visited: PageVisit) -> Iterator[str]:
    """Every view in one tab, as a person goes from one to the next; the fragment of each that is shown."""
    page = visited.open_live(VIEWS[0])
    for fragment in VIEWS:
        visited.go(fragment)
        tab = fragment.split("/")[1]
        expect(page.locator(f'[data-tab="{tab}"][aria-current="page"]')).to_be_visible()
        if "/nodes/" in fragment:
            expect(page.locator("[data-node-panel]").get_by_text("Conditions", exact=True)).to_be_visible()
        expect(page.get_by_text("Loading")).to_have_count(0)
        yield fragment


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(dashboard: DashboardProcess, visit: Visit, theme: Theme) -> None:
    visited = visit(dashboard.url, theme=theme)
    found = {fragment: visited.violations() for fragment in show_one_after_the_other(visited)}
    assert found == {fragment: [] for fragment in VIEWS}


def test_a_narrow_screen_scrolls_in_one_direction_only(dashboard: DashboardProcess, visit: Visit) -> None:
    visited = visit(dashboard.url, width=360, height=740)
    found, widths = {}, {}
    for fragment in show_one_after_the_other(visited):
        widths[fragment] = visited.page.evaluate("() => document.documentElement.scrollWidth")
        found[fragment] = visited.violations()
    assert {fragment: width for fragment, width in widths.items() if width > 360} == {}
    assert found == {fragment: [] for fragment in VIEWS}


def test_the_keyboard_alone_reaches_the_map_an_address_and_a_node(
    dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    page = visited.open_live("#/subnets/pods")
    expect(visited.map).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.matches('[data-map]')"):
            break
    expect(visited.map).to_be_focused()
    while "node-" not in visited.readout.inner_text():
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("[data-lit]")).to_contain_text("node-")


def test_the_skip_link_leads_to_the_content_of_the_view_that_is_open(
    dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    page = visited.open_live("#/nodes")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    assert page.url.endswith("#/nodes")


def test_what_has_the_focus_can_be_seen(dashboard: DashboardProcess, visit: Visit) -> None:
    page = visit(dashboard.url).open_live("#/subnets/pods")
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            """() => {
                const style = getComputedStyle(document.activeElement);
                return document.activeElement === document.body || style.outlineStyle !== "none" || style.boxShadow !== "none";
            }"""
        )
        assert outline, page.evaluate("() => document.activeElement.outerHTML.slice(0, 200)")
