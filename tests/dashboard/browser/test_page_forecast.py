"""Use over time, and the day on which a subnet runs out, of a subnet with six weeks behind it."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from dashboard.browser.conftest import Visit
from page_stage.dashboard_process import DashboardProcess
from page_stage.living_cluster import ClusterPlan, LivingCluster
from page_stage.past_weeks import PastWeeks, write_past

CIDR = "10.1.0.0/22"


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A cluster whose allocator remembers six weeks of growth."""
    directory = tmp_path_factory.mktemp("cluster")
    living = LivingCluster(directory, ClusterPlan(cidr=CIDR, speed=4))
    write_past(living.database, PastWeeks(cidr=CIDR, begin=200, end=560), time.time())
    with living, DashboardProcess(living.kubeconfig, "--allocator", living.allocator_url) as running:
        yield running


def test_the_forecast_names_a_day_and_what_it_rests_on(dashboard: DashboardProcess, visit: Visit) -> None:
    visited = visit(dashboard.url)
    page = visited.open_live("#/subnets/pods")
    page.locator("[data-forecast]").click()
    expect(page.locator("[data-forecast-table] tbody tr")).to_have_count(3)
    expect(page.locator("[data-forecast-table]")).to_contain_text("capacity")
    expect(page.get_by_text("rests on the maxima of 4")).to_be_visible()
    expect(page.locator(".uplot canvas").first).to_be_visible()
