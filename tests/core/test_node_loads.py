"""Nodes by their pods: in a mix, in the worst case, and after more pods came."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.errors import InvalidPlan
from podtide.core.plan.count_or_percent import CountOrPercent, parse_count_or_percent
from podtide.core.plan.node_loads import (
    NodeLoads,
    PlannedLoad,
    WorstCase,
    deal,
    level,
    pack,
    pods_of,
    split_fullest,
    worst_of,
)

all_loads = st.dictionaries(st.integers(0, 40), st.integers(1, 6), min_size=1, max_size=5)


def heights(loads: NodeLoads) -> list[int]:
    return sorted(pods for pods, count in loads.items() for _ in range(count))


def test_a_mix_is_dealt_to_a_number_of_nodes() -> None:
    assert deal({12: Fraction(1, 2), 30: Fraction(4, 10), 60: Fraction(1, 10)}, 20) == {12: 10, 30: 8, 60: 2}


def test_where_a_mix_does_not_come_out_even_the_larger_number_of_pods_is_taken() -> None:
    assert deal({10: 1, 20: 1}, 3) == {10: 1, 20: 2}
    assert deal({10: 9, 20: 1}, 1) == {20: 1}


@given(all_loads)
def test_nodes_dealt_to_their_own_number_are_the_same(loads: NodeLoads) -> None:
    assert deal(loads, sum(loads.values())) == loads


@given(all_loads, st.integers(0, 30))
def test_a_mix_gives_exactly_as_many_nodes_as_are_asked_for(mix: NodeLoads, nodes: int) -> None:
    assert sum(deal(mix, nodes).values()) == nodes


def test_the_fullest_nodes_are_split_off() -> None:
    assert split_fullest({5: 2, 9: 1, 7: 3}, 2) == ({9: 1, 7: 1}, {5: 2, 7: 2})
    assert split_fullest({5: 2}, 3) == ({5: 2}, {})


def test_more_pods_go_to_the_emptiest_nodes_first() -> None:
    assert level({0: 2, 3: 1, 10: 1}, 5) == {2: 1, 3: 2, 10: 1}
    assert level({0: 2, 3: 1, 10: 1}, 8) == {3: 1, 4: 2, 10: 1}
    assert level({4: 2}, 3) == {5: 1, 6: 1}
    assert level({4: 2, 9: 1}, 0) == {4: 2, 9: 1}


def one_by_one(loads: NodeLoads, pods: int) -> list[int]:
    nodes = heights(loads)
    for _ in range(pods):
        nodes[nodes.index(min(nodes))] += 1
    return sorted(nodes)


@given(all_loads, st.integers(0, 150))
def test_levelling_is_the_same_as_one_pod_after_the_other(loads: NodeLoads, pods: int) -> None:
    assert heights(level(loads, pods)) == one_by_one(loads, pods)


def test_without_a_node_no_pod_is_placed() -> None:
    assert level({}, 5) == {}
    assert level({0: 0}, 5) == {}
    assert pack({}, 5, 10) == {}


def test_pods_are_packed_onto_the_fullest_nodes_that_may_have_more() -> None:
    assert pack({2: 2, 8: 1, 12: 1}, 5, 10) == {5: 1, 2: 1, 10: 1, 12: 1}
    assert pack({2: 2}, 16, 10) == {10: 2}
    assert pack({2: 2}, 0, 10) == {2: 2}


@given(all_loads, st.integers(0, 300), st.integers(1, 50))
def test_packing_places_as_many_pods_as_nodes_may_have(loads: NodeLoads, pods: int, most: int) -> None:
    room = sum(max(0, most - each) * count for each, count in loads.items())
    packed = pack(loads, pods, most)
    assert sum(packed.values()) == sum(loads.values())
    assert pods_of(packed) == pods_of(loads) + min(pods, room)


def test_growth_burst_a_lost_zone_and_a_surge_come_one_after_the_other() -> None:
    case = WorstCase(
        growth=CountOrPercent(part=Fraction(1, 2)),
        burst=Fraction(3, 2),
        zones=3,
        lost_zones=1,
        surge=CountOrPercent(count=1),
    )
    worst = worst_of({10: 4}, case)
    assert worst.before == {15: 6}
    assert worst.live == {22: 2, 23: 2}  # the 30 pods of two nodes are on the four others
    assert worst.gone == {15: 2, 23: 1}  # two of the lost zone, one that the upgrade replaced
    assert (worst.nodes, worst.pods) == (4, 90)


def test_without_trouble_the_worst_is_what_there_is() -> None:
    assert worst_of({10: 4}, WorstCase()) == PlannedLoad(live={10: 4}, gone={}, before={10: 4})


def test_the_fullest_nodes_are_those_that_are_lost() -> None:
    assert worst_of({1: 2, 9: 1}, WorstCase(zones=3, lost_zones=1)).gone == {9: 1}


def test_a_surge_is_at_most_all_nodes() -> None:
    assert worst_of({3: 2}, WorstCase(surge=CountOrPercent(count=5))).gone == {3: 2}


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            {"burst": Fraction(1, 2)},
            "a burst of 0.5 is refused: it is how many times the pods there are, 1 or more",
        ),
        ({"zones": 0}, "0 zones is refused"),
        ({"zones": 3, "lost_zones": 3}, "3 lost zones of 3 is refused: give a number from 0 to 2"),
        ({"zones": 3, "lost_zones": -1}, "-1 lost zones of 3 is refused"),
    ],
)
def test_what_cannot_happen_is_refused(case: dict[str, Fraction | int], words: str) -> None:
    with pytest.raises(InvalidPlan, match=words):
        WorstCase(**case)  # type: ignore[arg-type]  # each is of its field's type


def test_a_zone_with_all_nodes_cannot_be_lost() -> None:
    with pytest.raises(InvalidPlan, match="of 1 nodes none would be left for the pods"):
        worst_of({5: 1}, WorstCase(zones=3, lost_zones=1))


@pytest.mark.parametrize(
    ("written", "total", "count"),
    [("3", 40, 3), (3, 40, 3), ("25%", 10, 3), ("0%", 10, 0), ("12.5%", 8, 1), (" 7 ", 1, 7)],
)
def test_a_count_or_a_percentage_rounded_up(written: str | int, total: int, count: int) -> None:
    assert parse_count_or_percent(written, "--surge").of(total) == count


@pytest.mark.parametrize("written", ["-3", "many", "25 %", "%", "1e3", "", "9999999999", -1])
def test_what_is_neither_is_refused_by_its_name(written: str | int) -> None:
    with pytest.raises(
        InvalidPlan, match=r"--surge .* is refused: give a whole number or a percentage, 0 or more"
    ):
        parse_count_or_percent(written, "--surge")


def test_a_count_or_percent_is_shown_as_it_was_written() -> None:
    assert [str(parse_count_or_percent(each, "x")) for each in ("3", "12.5%")] == ["3", "12.5%"]
