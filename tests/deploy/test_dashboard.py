"""The Grafana dashboard: what Grafana needs of its document, and that it charts what there is.

`test_queries` asks a real Prometheus each of its queries.
"""

import re
from collections import Counter
from itertools import combinations
from typing import Any

import jsonschema
import pytest

from deploy.monitoring import dashboard, known_metrics, metrics_in, panel_queries, panels

COLUMNS = 24
UNITS = {"short", "percentunit", "s", "d", "reqps", "wps", "dateTimeAsIso"}
"""Ids of Grafana's units: an id that it does not know is shown behind the number as text."""

_TEXT = {"type": "string", "minLength": 1}
_DATASOURCE = {
    "type": "object",
    "properties": {"type": {"const": "prometheus"}, "uid": {"const": "${datasource}"}},
    "required": ["type", "uid"],
    "additionalProperties": False,
}
_THRESHOLDS = {
    "type": "object",
    "properties": {
        "mode": {"const": "absolute"},
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "color": {"enum": ["green", "orange", "red", "blue"]},
                    "value": {"type": ["number", "null"]},
                },
                "required": ["color", "value"],
            },
        },
    },
    "required": ["mode", "steps"],
}
_TARGET = {
    "type": "object",
    "properties": {
        "refId": {"type": "string", "pattern": "^[A-Z]$"},
        "datasource": _DATASOURCE,
        "expr": _TEXT,
        "legendFormat": {"type": "string"},
        "instant": {"type": "boolean"},
    },
    "required": ["refId", "datasource", "expr", "legendFormat"],
    "additionalProperties": False,
}
_GRID = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "minimum": 0},
        "y": {"type": "integer", "minimum": 0},
        "w": {"type": "integer", "minimum": 1, "maximum": COLUMNS},
        "h": {"type": "integer", "minimum": 1},
    },
    "required": ["x", "y", "w", "h"],
    "additionalProperties": False,
}
_PANEL = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "title": _TEXT,
        "type": {"enum": ["row", "stat", "timeseries"]},
        "gridPos": _GRID,
    },
    "required": ["id", "title", "type", "gridPos"],
    "if": {"properties": {"type": {"const": "row"}}},
    "else": {
        "properties": {
            "description": _TEXT,
            "datasource": _DATASOURCE,
            "targets": {"type": "array", "minItems": 1, "items": _TARGET},
            "fieldConfig": {
                "type": "object",
                "properties": {
                    "defaults": {
                        "type": "object",
                        "properties": {"unit": {"enum": sorted(UNITS)}, "thresholds": _THRESHOLDS},
                        "required": ["unit"],
                    },
                    "overrides": {"type": "array"},
                },
                "required": ["defaults", "overrides"],
            },
        },
        "required": ["description", "datasource", "targets", "fieldConfig"],
    },
}
_VARIABLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "label": _TEXT,
        "type": {"enum": ["datasource", "query"]},
    },
    "required": ["name", "label", "type", "query"],
    "if": {"properties": {"type": {"const": "query"}}},
    "then": {
        "properties": {
            "datasource": _DATASOURCE,
            "query": {"type": "object", "required": ["query", "refId"]},
            "refresh": {"const": 2},
            "allValue": {"const": ".*"},
            "includeAll": {"const": True},
        },
        "required": ["datasource", "refresh", "includeAll", "allValue", "definition", "current"],
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "uid": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,40}$"},
        "title": _TEXT,
        "schemaVersion": {"type": "integer", "minimum": 36},
        "templating": {
            "type": "object",
            "properties": {"list": {"type": "array", "items": _VARIABLE}},
            "required": ["list"],
        },
        "panels": {"type": "array", "minItems": 1, "items": _PANEL},
        "time": {"type": "object", "required": ["from", "to"]},
    },
    "required": ["uid", "title", "schemaVersion", "templating", "panels", "time"],
}


def test_it_is_a_document_that_grafana_can_load() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(dashboard(), SCHEMA)


@pytest.mark.parametrize("name", ["id", "title"])
def test_no_two_panels_have_the_same(name: str) -> None:
    assert [found for found, count in Counter(panel[name] for panel in panels()).items() if count > 1] == []


def covers(panel: dict[str, Any]) -> set[tuple[int, int]]:
    """The cells of the grid that a panel takes."""
    place = panel["gridPos"]
    columns, rows = (range(place[at], place[at] + place[size]) for at, size in (("x", "w"), ("y", "h")))
    return {(x, y) for x in columns for y in rows}


def test_no_panel_lies_on_another_or_beyond_the_edge() -> None:
    for one, other in combinations(panels(), 2):
        assert not covers(one) & covers(other), f"{one['title']} lies on {other['title']}"
    assert [panel["title"] for panel in panels() if max(x for x, _ in covers(panel)) >= COLUMNS] == []


def test_what_a_panel_refers_to_by_a_variable_is_one() -> None:
    variables = [each["name"] for each in dashboard()["templating"]["list"]]
    assert variables == ["datasource", "network", "subnet", "pool"]
    used = {name for query in panel_queries() for name in re.findall(r"\$(\w+)", query.expression)}
    assert used == set(variables) - {"datasource"}


def test_the_targets_of_a_panel_have_each_their_own_letter() -> None:
    for panel in panels():
        letters = [target["refId"] for target in panel.get("targets", ())]
        assert len(letters) == len(set(letters))


def test_what_is_so_now_is_coloured_by_thresholds_that_rise() -> None:
    now = [panel for panel in panels() if panel["type"] == "stat"]
    for panel in now:
        defaults = panel["fieldConfig"]["defaults"]
        first, *others = [step["value"] for step in defaults["thresholds"]["steps"]]
        assert first is None
        assert others == sorted(others)
        assert defaults["color"] == {"mode": "thresholds"}
        assert all(target["instant"] for target in panel["targets"])
    assert len(now) >= 8


@pytest.mark.parametrize("row", ["Status", "Subnets", "Forecast", "Nodes", "Secondary networks"])
def test_it_has_a_row_of(row: str) -> None:
    assert row in [panel["title"] for panel in panels() if panel["type"] == "row"]


def test_it_charts_metrics_that_there_are() -> None:
    charted = {name for query in panel_queries() for name in metrics_in(query.expression)}
    asked = {
        name
        for each in dashboard()["templating"]["list"]
        if each["type"] == "query"
        for name in metrics_in(each["definition"])
    }
    assert charted | asked <= known_metrics()


def test_a_query_of_one_subnet_goes_by_the_variables_wherever_its_metric_can() -> None:
    of_a_subnet = r"(?:podtide_controller_subnet|podtide_subnet|cx_ipam)_\w+|podtide_allocator_(?:reserved|capacity|owed|containers)"
    of_a_pool = r"podtide_controller_slices_\w+"
    for query in panel_queries():
        for metrics, matcher in ((of_a_subnet, 'subnet=~"$subnet"}'), (of_a_pool, 'pool=~"$pool"}')):
            for found in re.finditer(metrics, query.expression):
                assert query.expression[found.end() :].partition("}")[0].endswith(matcher[:-1]), query
