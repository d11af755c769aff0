"""Pods that come and go by a trace: as many as it says, within its steps, the same for the same seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.replay.pod_changes import PodChange, PodPlacement, check_room
from podtide.simulation.replay.pod_trace import InvalidTrace, PodTrace

NODES = ("node-1", "node-2", "node-3")


def trace_of(*totals: int, times: tuple[float, ...] = ()) -> PodTrace:
    return PodTrace(
        columns=("pods",),
        times=times or tuple(10.0 * place for place in range(len(totals))),
        counts=tuple((total,) for total in totals),
        step_seconds=10.0,
    )


def drawn(
    trace: PodTrace, seed: str = "1", *, at_once: bool = False
) -> tuple[dict[str, int], list[PodChange]]:
    placement = PodPlacement(trace, NODES, 250, seeded_randomness(seed))
    first = dict(placement.pods)
    return first, list(placement.changes(at_once=at_once))


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8), st.integers(0, 1000))
def test_after_every_step_there_are_as_many_pods_as_the_trace_says_and_no_node_has_fewer_than_none(
    totals: list[int], seed: int
) -> None:
    first, changes = drawn(trace_of(*totals), str(seed))
    assert sum(first.values()) == totals[0]
    for place, total in enumerate(totals):
        pods = dict(first)
        for each in changes:
            if each.at <= 10.0 * place:
                pods[each.node] += each.change
        assert sum(pods.values()) == total
        assert min(pods.values()) >= 0
    assert changes == sorted(changes, key=lambda each: each.at)


def test_the_same_seed_gives_the_same_changes_and_another_does_not() -> None:
    trace = trace_of(5, 20, 3)
    assert drawn(trace, "1") == drawn(trace, "1")
    assert drawn(trace, "1") != drawn(trace, "2")


def test_a_change_is_spread_over_the_step_before_its_row_and_a_gap_keeps_the_count_before_it() -> None:
    _, changes = drawn(trace_of(1, 9, times=(0.0, 100.0)))
    assert all(90.0 <= each.at <= 100.0 for each in changes)
    assert len({each.at for each in changes}) == 8


def test_at_once_a_change_happens_at_the_time_of_its_row() -> None:
    _, changes = drawn(trace_of(1, 9), at_once=True)
    assert {each.at for each in changes} == {10.0}


def test_by_node_every_pod_is_where_the_trace_says() -> None:
    trace = PodTrace(columns=NODES, times=(0.0, 10.0), counts=((1, 0, 2), (1, 3, 0)), step_seconds=10.0)
    first, changes = drawn(trace)
    assert first == {"node-1": 1, "node-2": 0, "node-3": 2}
    assert sorted((each.node, each.change) for each in changes) == [
        *[("node-2", 1)] * 3,
        *[("node-3", -1)] * 2,
    ]


def test_pods_are_spread_over_nodes_about_evenly() -> None:
    first, _ = drawn(trace_of(300, 300))
    assert all(80 <= count <= 120 for count in first.values())


def test_nodes_are_filled_to_the_last_place_and_no_further() -> None:
    placement = PodPlacement(trace_of(30, 30), NODES, 10, seeded_randomness("1"))
    assert placement.pods == dict.fromkeys(NODES, 10)
    with pytest.raises(
        InvalidTrace, match="up to 31 pods, more than 3 nodes hold with 10 each: give --nodes 4"
    ):
        check_room(trace_of(1, 31), NODES, 10)


def test_a_node_with_too_many_pods_is_named() -> None:
    trace = PodTrace(columns=NODES, times=(0.0, 10.0), counts=((1, 0, 2), (1, 300, 0)), step_seconds=10.0)
    with pytest.raises(InvalidTrace, match="node node-2 has up to 300 pods, and a node holds at most 250"):
        check_room(trace, NODES, 250)
