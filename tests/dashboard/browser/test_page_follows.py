"""The page follows a cluster that lives: numbers, map and decisions as they come, and what it says when it cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dashboard.browser.conftest import Visit
from dashboard.browser.page_visit import PageVisit
from page_stage.dashboard_process import DashboardProcess
from page_stage.living_cluster import ClusterPlan, LivingCluster
from page_stage.sleeping_wire import SleepingWire

SUBNET = "#/subnets/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingCluster]:
    """Three nodes with two pods each, in a /24."""
    with LivingCluster(tmp_path_factory.mktemp("cluster"), ClusterPlan(speed=4)) as living:
        for node in ("node-1", "node-2", "node-3"):
            living.add_pods(node, 2)
        living.settle()
        yield living


@pytest.fixture
def dashboard(cluster: LivingCluster) -> Iterator[DashboardProcess]:
    """A server of its own for each test: some end it."""
    with DashboardProcess(cluster.kubeconfig, "--allocator", cluster.allocator_url) as running:
        yield running


def expect_count(visited: PageVisit, state: str, count: int) -> None:
    """Wait until the legend counts so many addresses in a state."""
    expect(visited.page.locator(f'[data-legend="{state}"] .number').first).to_have_text(str(count))


def test_a_burst_shows_up_in_numbers_on_the_map_and_among_the_decisions(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    visited.open_live(SUBNET)
    before = cluster.pod_count
    expect_count(visited, "pod", before)
    cluster.add_pods("node-1", 35)
    expect_count(visited, "pod", before + 35)
    visited.go("#/decisions")
    decision = visited.page.locator("[data-decision]").filter(has_text="asks for 47").first
    decision.get_by_role("button").click()
    expect(decision).to_contain_text("= 47")
    visited.go("#/nodes")
    expect(visited.page.locator('[data-node="node-1"] .column-request')).to_have_text("47")
    cluster.remove_pods("node-1", 35)
    visited.go(SUBNET)
    expect_count(visited, "pod", before)


def test_after_a_restart_of_the_server_nothing_is_missing(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    visited.may_fail = True
    visited.open_live(SUBNET)
    dashboard.kill()
    visited.expect_state("lost")
    expect(visited.page.locator("[data-connection]")).to_contain_text("connection lost, trying again")
    cluster.add_pods("node-2", 5)
    cluster.add_node("node-4")
    cluster.add_pods("node-4", 3)
    cluster.settle()
    dashboard.start()
    visited.expect_state("live")
    expect_count(visited, "pod", cluster.pod_count)
    visited.go("#/nodes")
    expect(visited.page.locator('[data-node="node-4"]')).to_be_visible()
    cluster.remove_pods("node-2", 5)
    cluster.remove_node("node-4")
    expect(visited.page.locator('[data-node="node-4"]')).to_have_count(0)


def test_a_browser_that_had_no_network_for_a_while_catches_up(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    visited.may_fail = True
    visited.open_live(SUBNET)
    visited.page.context.set_offline(True)
    cluster.add_pods("node-3", 4)
    cluster.settle()
    visited.page.context.set_offline(False)
    expect_count(visited, "pod", cluster.pod_count)
    cluster.remove_pods("node-3", 4)


def test_a_browser_that_slept_for_an_hour_says_how_old_its_data_is_and_misses_nothing(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    with SleepingWire(dashboard.url) as wire:
        visited = visit(wire.url)
        visited.may_fail = True
        visited.page.clock.install()  # it goes on by itself, until it is turned
        visited.open_live(SUBNET)
        wire.fall_asleep()
        cluster.add_pods("node-1", 6)
        cluster.add_node("overnight")
        cluster.add_pods("overnight", 3)
        cluster.settle()
        visited.page.clock.fast_forward("01:00:00")
        visited.expect_state("lost")
        told = visited.page.locator("[data-connection]")
        expect(told).to_contain_text("connection lost, trying again · data is 1 h")
        wire.wake_up()
        visited.expect_state("live")
        expect_count(visited, "pod", cluster.pod_count)
        visited.go("#/decisions")
        expect(
            visited.page.locator("[data-decision]").filter(has_text="node overnight has joined")
        ).to_be_visible()
        visited.go("#/nodes")
        expect(visited.page.locator('[data-node="overnight"]')).to_be_visible()
        cluster.remove_pods("node-1", 6)
        cluster.remove_node("overnight")


def test_a_tab_that_the_browser_has_frozen_catches_up_when_it_is_looked_at(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    visited.may_fail = True
    visited.open_live(SUBNET)
    session = visited.page.context.new_cdp_session(visited.page)
    session.send("Page.setWebLifecycleState", {"state": "frozen"})
    cluster.add_pods("node-3", 4)
    cluster.settle()
    session.send("Page.setWebLifecycleState", {"state": "active"})
    expect_count(visited, "pod", cluster.pod_count)
    cluster.remove_pods("node-3", 4)


def test_a_subnet_that_vanishes_while_it_is_looked_at_is_said_so(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    cluster.add_subnet("passing", "10.2.0.0/26")
    cluster.add_node("guest", "passing")
    visited = visit(dashboard.url)
    visited.may_fail = True
    visited.open_live("#/subnets/passing")
    expect(visited.map).to_be_visible()
    cluster.remove_node("guest")
    cluster.forget_subnet("passing")
    expect(visited.page.get_by_role("alert")).to_contain_text("Subnet passing is not there (any more)")
    visited.go(SUBNET)
    expect(visited.map).to_be_visible()


def test_an_allocator_that_is_away_is_said_so_and_the_rest_goes_on(
    cluster: LivingCluster, dashboard: DashboardProcess, visit: Visit
) -> None:
    visited = visit(dashboard.url)
    visited.may_fail = True
    visited.open_live("#/health")
    cluster.stop_allocator()
    expect(visited.page.locator('[data-health="allocator"][data-ok="false"]')).to_be_visible()
    visited.go(SUBNET)
    before = cluster.pod_count
    cluster.add_pods("node-1", 1)
    expect_count(visited, "pod", before + 1)
    cluster.start_allocator()
    visited.go("#/health")
    expect(visited.page.locator('[data-health="allocator"][data-ok="true"]')).to_be_visible()
    cluster.remove_pods("node-1", 1)


def test_without_an_allocator_the_page_says_what_it_lacks(cluster: LivingCluster, visit: Visit) -> None:
    with DashboardProcess(cluster.kubeconfig) as running:
        visited = visit(running.url)
        visited.open_live(SUBNET)
        expect_count(visited, "pod", cluster.pod_count)
        visited.may_fail = True  # from here on: the server is ended while the page is open
        expect(visited.page.locator("[data-no-history]")).to_contain_text("--allocator")
        expect(visited.page.locator(".figure").filter(has_text="Thresholds")).to_contain_text("0.9")


def test_a_wrong_token_is_refused_and_the_right_one_opens(
    cluster: LivingCluster, visit: Visit, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("open-sesame-and-more\n")
    with DashboardProcess(cluster.kubeconfig, "--page-token-file", token) as running:
        visited = visit(running.url)
        visited.may_fail = True
        page = visited.open()
        visited.expect_state("token")
        form = page.get_by_label("Token")
        form.fill("open-barley")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("token")
        form.fill("open-sesame-and-more")
        page.keyboard.press("Enter")
        visited.expect_state("live")
        page.reload()
        visited.expect_state("live")
        by_link = visit(running.url)
        by_link.may_fail = True
        by_link.open_live("#token=open-sesame-and-more")
        assert "open-sesame" not in by_link.page.url
