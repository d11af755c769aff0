"""The chart's alerting rules and its dashboard, as far as tests look into them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from manifests import CHART
from podtide.controller.counts import ControllerCounts
from podtide.controller.metrics import ControllerMetrics

ROOT = Path(__file__).parent.parent.parent
RULES = CHART / "alerts" / "podtide.rules.yaml"
RULE_TESTS = Path(__file__).parent / "alerts" / "podtide.test.yaml"
DASHBOARD = CHART / "dashboards" / "podtide.json"
RUNBOOKS = ROOT / "docs" / "runbooks.md"

FORECAST = {
    "podtide_subnet_runs_out_timestamp_seconds",
    "podtide_subnet_runs_out_earliest_timestamp_seconds",
    "podtide_subnet_runs_out_latest_timestamp_seconds",
}
"""There only for a subnet that grows, and has a week of history."""


class AlertRule(Struct, frozen=True):
    """One rule of the file."""

    alert: str
    expression: str
    seconds: str
    labels: dict[str, str]
    annotations: dict[str, str]


class PanelQuery(Struct, frozen=True):
    """A query of the dashboard."""

    panel: str
    expression: str


def alert_rules() -> list[AlertRule]:
    """All rules, in the order of the file."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [
        AlertRule(each["alert"], each["expr"], each["for"], each["labels"], each["annotations"])
        for group in groups
        for each in group["rules"]
    ]


def dashboard() -> dict[str, Any]:
    """The dashboard's document."""
    document: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return document


def panels() -> list[dict[str, Any]]:
    """All panels, those of collapsed rows too."""
    return [each for panel in dashboard()["panels"] for each in (panel, *panel.get("panels", ()))]


def panel_queries() -> Iterator[PanelQuery]:
    """The queries of all panels."""
    for panel in panels():
        for target in panel.get("targets", ()):
            yield PanelQuery(panel["title"], target["expr"])


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression names, a histogram's by its own name."""
    found = re.findall(r"\b(?:podtide|cx_ipam)_\w+", expression)
    return {name.removesuffix("_bucket") for name in found}


def known_metrics() -> set[str]:
    """Those of the manual's tables, and what a controller says before it did anything."""
    pages = [(ROOT / "docs" / name).read_text() for name in ("agent.md", "allocator.md")]
    documented = {name for page in pages for name in re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    told = ControllerMetrics(ControllerCounts()).render().decode()
    return documented | set(re.findall(r"^# TYPE (\w+)", told, re.MULTILINE))
