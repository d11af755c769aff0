"""What Prometheus is told of a controller, and that every name of it is documented."""

import re
from collections import Counter
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podtide.controller.counts import (
    REPAIRS,
    ControllerCounts,
    RepairCounts,
    RunOutCounts,
    SliceCounts,
    SubnetCounts,
)
from podtide.controller.metrics import ControllerMetrics

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "cli.md"

COUNTS = ControllerCounts(
    leading=True,
    reconciles=2,
    looks=3,
    allocator_calls=Counter({("put_container", "ok"): 4, ("demand", "AllocatorUnavailable"): 5}),
    allocator_reachable=False,
    writes=Counter({"NodeNetworkConfig/status": 5}),
    owed_nodes=6,
    retired_nodes=7,
    network_looks=10,
    refused=True,
    held_retirements=15,
    slices={"blue": SliceCounts(assigned=11, total=12, waiting=13)},
    repair=RepairCounts(looks=10, suspects=11, repairs=Counter({"allocation-released": 12})),
    run_outs={
        "pods": RunOutCounts(date(1970, 1, 3), date(1970, 1, 2), None),
        "none": RunOutCounts(),
    },
    subnets={
        "pods": SubnetCounts(
            capacity=253,
            reserved=240,
            containers=8,
            owed=9,
            exhausted=True,
            starved=False,
            batch=16,
            buffer=Fraction(1, 2),
            top=32,
            unanswered=14,
        )
    },
)


def families() -> dict[str, tuple[str, dict[str, float]]]:
    """The sentence and the samples of every metric but the process's, by name."""
    found = text_string_to_metric_families(ControllerMetrics(COUNTS).render().decode())
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: (
            family.documentation,
            {",".join(sample.labels.values()): sample.value for sample in family.samples},
        )
        for family in found
        if not family.name.startswith("process_")
    }


def test_everything_that_is_counted_is_told() -> None:
    told = {name.removeprefix("podtide_controller_"): samples for name, (_, samples) in families().items()}
    assert told == {
        "leading": {"": 1},
        "refused": {"": 1},
        "held_retirements": {"": 15},
        "owed_nodes": {"": 6},
        "reconciles_total": {"": 2},
        "looks_total": {"": 3},
        "retired_nodes_total": {"": 7},
        "allocator_reachable": {"": 0},
        "allocator_calls_total": {"put_container,ok": 4, "demand,AllocatorUnavailable": 5},
        "writes_total": {"NodeNetworkConfig/status": 5},
        "repair_looks_total": {"": 10},
        "repair_suspects": {"": 11},
        "repairs_total": {"allocation-released": 12},
        "network_looks_total": {"": 10},
        "slices_assigned": {"blue": 11},
        "slices_total": {"blue": 12},
        "slices_waiting": {"blue": 13},
        "subnet_capacity": {"pods": 253},
        "subnet_reserved": {"pods": 240},
        "subnet_containers": {"pods": 8},
        "subnet_owed": {"pods": 9},
        "subnet_exhausted": {"pods": 1},
        "subnet_starved": {"pods": 0},
        "subnet_batch": {"pods": 16},
        "subnet_buffer": {"pods": 0.5},
        "subnet_top": {"pods": 32},
        "subnet_unanswered": {"pods": 14},
        "podtide_subnet_runs_out_timestamp_seconds": {"pods": 2 * 86_400},
        "podtide_subnet_runs_out_earliest_timestamp_seconds": {"pods": 86_400},
        "podtide_subnet_runs_out_latest_timestamp_seconds": {},
    }


def test_a_replica_that_does_not_lead_says_nothing_of_the_allocator() -> None:
    told = ControllerMetrics(ControllerCounts()).render().decode()
    assert not re.search(r"^podtide_controller_allocator_reachable", told, re.MULTILINE)


def test_repairs_are_counted_from_zero_so_that_the_first_is_an_increase() -> None:
    told = ControllerMetrics(ControllerCounts()).render().decode()
    assert re.findall(r'^podtide_controller_repairs_total\{what="([\w-]+)"\} 0\.0$', told, re.MULTILINE) == [
        *REPAIRS
    ]


@pytest.mark.parametrize("name", sorted(families()))
def test_every_metric_is_a_sentence_for_people(name: str) -> None:
    sentence, _ = families()[name]
    assert sentence.endswith(".")
    assert sentence[0].isupper()


def test_every_metric_is_documented_and_no_other() -> None:
    documented = re.findall(
        r"^\| `(podtide_(?:controller|subnet)_\w+)` \|", DOCUMENTATION.read_text(), flags=re.MULTILINE
    )
    assert sorted(documented) == sorted(families())
