"""Every query of the dashboard and of the alerting rules, on a real Prometheus that scrapes a running `podtide demo`."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.test_demo import Show, running
from deploy.installed import connected
from deploy.monitoring import FORECAST, alert_rules, dashboard, metrics_in, panel_queries
from deploy.prometheus_server import PrometheusServer
from patience import PATIENCE_SECONDS
from podtide.simulation.nodes.network_definitions import definitions
from prometheus_programs import PrometheusPrograms

pytestmark = [pytest.mark.slow, pytest.mark.real_time]

WITHOUT_SERIES = {
    'sum by (verb, outcome) (rate(podtide_agent_calls_total{outcome!="ok"}[5m]))': "no call fails in the story",
}
"""The queries that find nothing in the demo, each with its reason; those of `FORECAST` want a week of history."""


@contextmanager
def a_demo() -> Iterator[tuple[Show, str]]:
    """A demo that has begun and will not end soon, with a secondary network, and where its metrics are."""
    with running("--nodes", "3", "--speed", "0.2", "--metrics-listen", "127.0.0.1:0") as show:
        kubeconfig = Path(show.until("podtide check").partition("--kubeconfig ")[2].split()[0])
        targets = show.until("http_sd_configs").partition("'")[2].partition("'")[0]
        show.until("each of node-1, node-2 and node-3 asks for 15 after 0")
        asyncio.run(_define_network(kubeconfig))
        yield show, targets


async def _define_network(kubeconfig: Path) -> None:
    (sliced,) = definitions(1, nodes=3)
    async with connected(kubeconfig) as cluster:
        await cluster.create(sliced.attachment(), manager="test")


def test_every_query_of_dashboard_and_rules_is_answered_and_finds_what_it_is_about(
    prometheus: PrometheusPrograms,
) -> None:
    """An error fails at once; what finds nothing yet is asked again."""
    with a_demo() as (show, targets), PrometheusServer(prometheus, targets) as server:
        missing = {expression: names for expression, names in queries().items() if not names & FORECAST}
        for expression in queries().keys() - missing.keys():
            assert server.series(expression) == []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while missing.keys() - WITHOUT_SERIES and time.monotonic() < deadline:
            missing = {each: names for each, names in missing.items() if not server.series(each)}
        assert missing.keys() <= WITHOUT_SERIES.keys()
        while any(rule["health"] == "unknown" for rule in server.rules()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert {rule["name"]: rule["health"] for rule in server.rules()} == {
            rule.alert: "ok" for rule in alert_rules()
        }
        show.process.send_signal(signal.SIGINT)
        assert show.rest()[-1].startswith("  audit: clean, ")


def queries() -> dict[str, set[str]]:
    """All that is asked, each with the metrics in it.

    An alert's expression finds nothing where all is well: of it each metric is asked for, and Prometheus itself
    evaluates the whole.
    """
    of_panels = [each.expression for each in panel_queries()]
    of_variables = [
        "count by ({1}) ({0})".format(*each["query"]["query"].removeprefix("label_values(")[:-1].split(", "))
        for each in dashboard()["templating"]["list"]
        if each["type"] == "query"
    ]
    of_rules = [name for rule in alert_rules() for name in metrics_in(rule.expression)]
    asked = (chosen(each) for each in (*of_panels, *of_variables, *of_rules))
    return {each: metrics_in(each) for each in asked}


def chosen(expression: str) -> str:
    """The expression as Grafana sends it where all values of a variable are chosen."""
    for each in dashboard()["templating"]["list"]:
        expression = expression.replace(f"${each['name']}", each.get("allValue", ""))
    assert "$" not in expression
    return expression
