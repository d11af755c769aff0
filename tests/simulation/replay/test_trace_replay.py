"""A trace lived through by the production programs: the papers' burst, a subnet that is nearly full, and rest."""

from functools import cache

import pytest

from podtide.simulation.replay.figures import ReplayOutcome
from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.trace_replay import TraceLoad, replay_trace


def trace_of(*totals: int, step_seconds: float = 60.0) -> PodTrace:
    return PodTrace(
        columns=("pods",),
        times=tuple(step_seconds * place for place in range(len(totals))),
        counts=tuple((total,) for total in totals),
        step_seconds=step_seconds,
    )


BURST = TraceLoad(trace=trace_of(1, 36, 36), nodes=("node-1",), subnet="10.0.0.0/16", at_once=True)
CONSTANT = TraceLoad(
    trace=trace_of(12, 12, step_seconds=1800.0), nodes=("node-1", "node-2"), subnet="10.0.0.0/24"
)
SCARCE = TraceLoad(
    trace=PodTrace(
        columns=tuple(f"node-{number}" for number in range(10)),
        times=(0.0, 60.0, 120.0, 180.0, 240.0),
        counts=(
            (3,) * 10,
            (43, 33, 28, 3, 3, 3, 3, 3, 3, 3),
            (43, 33, 28, 23, 23, 18, 18, 3, 3, 3),
            (43, 33, 28, 23, 23, 18, 18, 18, 13, 14),
            (43, 33, 28, 23, 23, 18, 18, 18, 13, 14),
        ),
        step_seconds=60.0,
    ),
    nodes=tuple(f"node-{number}" for number in range(10)),
    subnet="10.0.0.0/24",
    at_once=True,
)
"""The comparison's: 231 pods, which are 95 % of the subnet with the nodes' own addresses."""
CHURN = TraceLoad(trace=trace_of(8, 40, 5, 22), nodes=("node-1", "node-2"), subnet="10.0.0.0/24")
LOADS = {"burst": BURST, "constant": CONSTANT, "scarce": SCARCE, "churn": CHURN}


@cache
def outcome_of(strategy: str, load: str) -> ReplayOutcome:
    return replay_trace(strategy, 16, LOADS[load], lambda _part: None)


@pytest.mark.parametrize(
    ("strategy", "requests", "delayed", "failed", "slowest"),
    [("reactive", 2, 20, 24, 33), ("fixed", 1, 1, 0, 8.1), ("adaptive", 1, 1, 0, 8.1)],
)
def test_a_burst_of_35_pods_comes_to_what_the_papers_and_the_comparison_say(
    strategy: str, requests: int, delayed: int, failed: int, slowest: float
) -> None:
    figures = outcome_of(strategy, "burst").figures
    assert (figures.pods, figures.requests, figures.delayed, figures.failed_adds) == (
        35,
        requests,
        delayed,
        failed,
    )
    assert figures.ready_max_seconds == pytest.approx(slowest, abs=0.5)
    assert figures.unserved == figures.abandoned == 0


@pytest.mark.parametrize("strategy", ["reactive", "fixed", "adaptive"])
def test_a_constant_trace_writes_nothing_after_the_start(strategy: str) -> None:
    figures = outcome_of(strategy, "constant").figures
    assert (figures.pods, figures.requests, figures.api_writes, figures.allocator_writes) == (0, 0, 0, 0)
    assert figures.idle_mean == figures.idle_p99 > 0
    assert figures.seconds == 3600.0


def test_where_the_subnet_is_nearly_full_reactive_pools_fail_pods_and_the_adaptive_batch_serves_every_one() -> (
    None
):
    reactive, fixed, adaptive = (
        outcome_of(strategy, "scarce").figures for strategy in ("reactive", "fixed", "adaptive")
    )
    assert reactive.failed_adds > 0
    assert reactive.unserved > 0
    assert fixed.unserved > 0
    assert (adaptive.failed_adds, adaptive.unserved, adaptive.abandoned) == (0, 0, 0)
    assert adaptive.lowest_batch < 16 == fixed.lowest_batch == reactive.lowest_batch
    assert adaptive.idle_mean < fixed.idle_mean
    assert fixed.starved_times >= 1
    assert 0 < fixed.starved_seconds <= fixed.seconds
    assert reactive.exhausted_times >= 1


@pytest.mark.parametrize("load", ["burst", "scarce", "churn"])
@pytest.mark.parametrize("strategy", ["reactive", "adaptive"])
def test_totals_add_up(strategy: str, load: str) -> None:
    outcome = outcome_of(strategy, load)
    figures, last = outcome.figures, outcome.samples[-1]
    assert figures.pods == figures.at_once + figures.delayed + figures.unasked
    assert last.pods == LOADS[load].trace.totals[-1]
    assert last.waiting == figures.unserved
    assert last.failed_adds == figures.failed_adds
    assert (last.requests, last.api_writes, last.allocator_writes) == (
        figures.requests,
        figures.api_writes,
        figures.allocator_writes,
    )
    assert figures.requests <= figures.api_writes
    assert figures.reserved_max >= max(sample.reserved for sample in outcome.samples)
    assert figures.delay_p50_seconds <= figures.delay_p99_seconds <= figures.delay_max_seconds
    assert figures.seconds == LOADS[load].trace.seconds
    assert [sample.second for sample in outcome.samples] == sorted(
        sample.second for sample in outcome.samples
    )


def test_the_same_seed_gives_the_same_figures_and_another_does_not() -> None:
    again = replay_trace("adaptive", 16, CHURN, lambda _part: None)
    assert again == outcome_of("adaptive", "churn")
    other = TraceLoad(trace=CHURN.trace, nodes=CHURN.nodes, subnet=CHURN.subnet, seed=2)
    assert replay_trace("adaptive", 16, other, lambda _part: None) != again


def test_a_speed_plays_the_same_pods_in_less_time_and_figures_stay_in_the_traces_time() -> None:
    told: list[float] = []
    quick = TraceLoad(trace=CHURN.trace, nodes=CHURN.nodes, subnet=CHURN.subnet, speed=2.0)
    outcome = replay_trace("adaptive", 16, quick, told.append)
    assert outcome.figures.seconds == CHURN.trace.seconds
    assert outcome.figures.pods == outcome_of("adaptive", "churn").figures.pods
    assert told == sorted(told)
    assert told[-1] == 1.0
