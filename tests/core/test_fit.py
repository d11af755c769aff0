"""Whether more pods fit: the verdict, what is missing, and what gives way."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.core.errors import InvalidPlan
from podtide.core.plan.fit import (
    AddressBounds,
    FirstToGiveWay,
    FitQuestion,
    FitVerdict,
    KnownDemand,
    decide_fit,
    known_demand,
)
from podtide.core.plan.node_loads import NodeLoads
from podtide.core.plan.settled_batch import PlannedSubnet, settle
from podtide.core.subnet.batch import BatchInForce, SubnetReading
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import SubnetScaler
from podtide.core.subnet.statement import StatedDemand, Statement, request_at, stated_demand

HALF = Fraction(1, 2)
all_loads = st.dictionaries(st.integers(0, 40), st.integers(1, 5), min_size=1, max_size=4)


def exactly(loads: NodeLoads, **others: int) -> KnownDemand:
    return KnownDemand(low=loads, high=loads, **others)


def ask(loads: NodeLoads, capacity: int, pods: int, nodes: int = 0) -> FitQuestion:
    return FitQuestion(demand=exactly(loads), capacity=capacity, pods=pods, nodes=nodes)


def test_pods_fit_as_long_as_there_is_an_address_for_each_pod_and_each_node() -> None:
    # 12 nodes with 150 pods need 162 of 253; 91 are left.
    assert decide_fit(ask({12: 6, 13: 6}, 253, 91)).verdict is FitVerdict.FITS
    one_more = decide_fit(ask({12: 6, 13: 6}, 253, 92))
    assert one_more.verdict is FitVerdict.SHORT
    assert (one_more.missing, one_more.room) == (AddressBounds(1, 1), AddressBounds(91, 91))


def test_a_new_node_takes_an_address_for_itself() -> None:
    assert decide_fit(ask({12: 6, 13: 6}, 253, 90, nodes=1)).verdict is FitVerdict.FITS
    assert decide_fit(ask({12: 6, 13: 6}, 253, 91, nodes=1)).verdict is FitVerdict.SHORT


def test_what_is_in_quarantine_is_not_free() -> None:
    question = replace(ask({12: 6, 13: 6}, 253, 90), demand=exactly({12: 6, 13: 6}, ungoverned=2))
    assert decide_fit(question).missing == AddressBounds(1, 1)


def test_pods_that_no_node_may_have_do_not_fit() -> None:
    question = replace(ask({9: 2}, 253, 3), demand=exactly({9: 2}, max_ips=10))
    answer = decide_fit(question)
    assert (answer.verdict, answer.without_place, answer.missing) == (
        FitVerdict.SHORT,
        1,
        AddressBounds(0, 0),
    )
    assert decide_fit(replace(question, nodes=1)).verdict is FitVerdict.FITS


def test_the_batch_gives_way_first_and_it_is_told_with_which_pod() -> None:
    answer = decide_fit(ask({12: 6, 13: 6}, 253, 62))
    assert answer.before.scaler.batch == 4
    assert answer.first == FirstToGiveWay(pod=27, batch=2, exhausted=False, starved=False)
    assert (answer.after.least_batch, answer.after.most_batch) == (2, 2)
    before = decide_fit(ask({12: 6, 13: 6}, 253, answer.first.pod - 1))
    assert before.first is None


def test_where_there_is_room_nothing_gives_way() -> None:
    answer = decide_fit(ask({12: 6, 13: 6}, 2000, 10))
    assert (answer.first, answer.after.least_batch, answer.after.may_be_exhausted) == (None, 16, False)


def test_which_batch_is_in_force_depends_on_where_the_pods_land() -> None:
    answer = decide_fit(ask({0: 20}, 500, 140))
    assert (answer.after.least_batch, answer.after.most_batch) == (8, 16)
    assert answer.after.is_certain


@given(all_loads, st.integers(1, 800), st.integers(0, 200), st.integers(0, 5))
def test_what_fits_fits_with_fewer_pods_and_in_a_larger_subnet(
    loads: NodeLoads, capacity: int, pods: int, nodes: int
) -> None:
    answer = decide_fit(ask(loads, capacity, pods, nodes))
    if answer.verdict is FitVerdict.FITS:
        assert decide_fit(ask(loads, capacity, pods // 2, nodes)).verdict is FitVerdict.FITS
        assert decide_fit(ask(loads, capacity + 7, pods, nodes)).verdict is FitVerdict.FITS
    else:
        assert decide_fit(ask(loads, capacity, pods + 3, nodes)).verdict is not FitVerdict.FITS


@given(all_loads, st.integers(1, 800), st.integers(0, 200))
def test_as_many_pods_fit_as_there_is_said_to_be_room_for(loads: NodeLoads, capacity: int, pods: int) -> None:
    room = decide_fit(ask(loads, capacity, pods)).room.least
    needed = sum((1 + each) * count for each, count in loads.items())
    if needed <= capacity:
        assert decide_fit(ask(loads, capacity, room)).verdict is FitVerdict.FITS
    assert decide_fit(ask(loads, capacity, room + 1)).verdict is FitVerdict.SHORT


def spreads(nodes: list[int], pods: int) -> list[NodeLoads]:
    """Every way to put the pods on the nodes."""
    ways = product(range(pods + 1), repeat=len(nodes))
    return [
        Counter(have + more for have, more in zip(nodes, way, strict=True))
        for way in ways
        if sum(way) == pods
    ]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
    st.integers(0, 5),
    st.integers(1, 60),
    st.sampled_from([1, 2, 4, 16]),
)
def test_the_verdict_holds_for_every_way_to_spread_the_pods(
    nodes: list[int], pods: int, capacity: int, batch: int
) -> None:
    bounds = BatchBounds(batch)
    question = FitQuestion(demand=exactly(Counter(nodes)), capacity=capacity, pods=pods, bounds=bounds)
    fits = decide_fit(question).verdict is FitVerdict.FITS
    subnet = PlannedSubnet(bounds=bounds, capacity=capacity, max_ips=250)
    owed = {settle(each, subnet).owed for each in spreads(nodes, pods)}
    assert all(each == 0 for each in owed) if fits else all(owed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pods": -1}, "-1 more pods is refused"),
        ({"nodes": -2}, "-2 more nodes is refused"),
        ({"capacity": 0}, "capacity 0 is refused: a subnet has at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidPlan, match=words):
        replace(ask({1: 1}, 10, 1), **change)


# --- what nodes state


def stating(demand: int, batch: int, top: int = 16) -> ContainerDemand:
    scaler = BatchBounds(batch, HALF).rungs[-1]
    statement = Statement(
        demand=demand,
        batch=batch,
        buffer=scaler.buffer,
        max_ips=250,
        primaries=1,
        request=0,
        top=top,
    )
    request = request_at(demand, statement.scaler, 1)
    return ContainerDemand(stated_demand(replace(statement, request=request)), 1 + request)


def read(holdings: dict[ContainerDemand, int], **others: int) -> SubnetReading:
    reserved = sum(each.taken * count for each, count in holdings.items())
    return SubnetReading(
        capacity=1000, reserved=reserved, containers=sum(holdings.values()), holdings=holdings, **others
    )


def in_force(batch: int, age_seconds: float = inf) -> BatchInForce:
    return BatchInForce(scaler=SubnetScaler(batch, HALF), age_seconds=age_seconds)


def test_below_the_top_nodes_state_their_pods_exactly() -> None:
    known = known_demand(read({stating(10, 4): 3}, ungoverned=5), in_force(4), top=16)
    assert known == KnownDemand(low={10: 3}, high={10: 3}, ungoverned=5)


def test_at_the_top_only_a_window_is_known_and_the_verdict_may_be_uncertain() -> None:
    known = known_demand(read({stating(10, 16): 3}), in_force(16), top=16)
    assert (known.low, known.high) == ({9: 3}, {24: 3})
    question = FitQuestion(demand=known, capacity=100, pods=40)
    answer = decide_fit(question)
    assert answer.verdict is FitVerdict.UNCERTAIN
    assert (answer.needed, answer.missing) == (AddressBounds(70, 115), AddressBounds(0, 15))
    assert decide_fit(replace(question, pods=25)).verdict is FitVerdict.FITS
    assert decide_fit(replace(question, pods=71)).verdict is FitVerdict.SHORT


def test_a_node_that_does_not_answer_keeps_what_it_holds() -> None:
    silent = stating(10, 16)
    known = known_demand(read({silent: 1}), in_force(4), top=16)
    assert (known.low, known.high) == ({31: 1}, {31: 1})
    soon = known_demand(read({silent: 1}), in_force(4, age_seconds=1.0), top=16)
    assert (soon.low, soon.high) == ({9: 1}, {24: 1})


def test_a_node_that_asked_for_nothing_yet_holds_its_primary() -> None:
    newcomer = ContainerDemand(StatedDemand(), 1)
    assert known_demand(read({newcomer: 2}), in_force(16), top=16).high == {0: 2}


def test_a_subnet_without_nodes_has_room_for_all_of_it() -> None:
    known = known_demand(read({}), BatchInForce(), top=16)
    assert known == KnownDemand(low={}, high={})
    answer = decide_fit(FitQuestion(demand=known, capacity=253, pods=252, nodes=2))
    assert (answer.verdict, answer.missing.most) == (FitVerdict.SHORT, 1)
    assert decide_fit(FitQuestion(demand=known, capacity=253, pods=1)).without_place == 1
