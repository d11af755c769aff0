"""What pods need of a subnet: never less than the truth, and exact where nodes state their demand exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.core.subnet.demand_by_batch import ContainerDemand, SubnetDemand
from podtide.core.subnet.demand_reading import read_demand, smallest_scaler
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.statement import StatedDemand, Statement, request_at, stated_demand

HALF = Fraction(1, 2)
ONE = SubnetScaler(1, HALF)
SUBNET = SubnetDemand(
    holdings={}, ungoverned=0, in_force=SubnetScaler(16, HALF), top=16, exhausted=False, is_overdue=False
)


def holding(demand: int, batch: int = 16, top: int = 16) -> ContainerDemand:
    """A container at rest whose node states so many pods."""
    request = request_at(demand, Scaler(batch, HALF), 1)
    statement = Statement(
        demand=demand, batch=batch, buffer=HALF, max_ips=250, primaries=1, request=request, top=top
    )
    return ContainerDemand(stated_demand(statement), 1 + request)


def test_at_the_top_batch_the_highest_demand_of_the_window_counts() -> None:
    node = holding(3)
    assert (node.stated.low, node.stated.high, node.taken) == (0, 8, 16)
    reading = read_demand(replace(SUBNET, holdings={node: 2}), ONE, held=30)
    assert (reading.demand, reading.on_pods, reading.idle) == (16, 16, 14)
    assert reading.need == 2 * (1 + request_at(8, Scaler(1, HALF), 1))


def test_below_the_top_batch_the_reading_is_exact() -> None:
    node = holding(3, top=32)
    reading = read_demand(replace(SUBNET, holdings={node: 2}, top=32), ONE, held=30)
    assert (reading.demand, reading.on_pods, reading.idle) == (6, 6, 24)


def test_quarantine_is_needed_by_no_pod_and_is_reserved_with_any_batch() -> None:
    reading = read_demand(replace(SUBNET, ungoverned=9), ONE, held=0)
    assert (reading.demand, reading.need, reading.on_pods, reading.idle) == (0, 9, 0, 0)


def test_what_is_owed_is_on_no_pod() -> None:
    node = holding(40)
    reading = read_demand(replace(SUBNET, holdings={node: 1}), ONE, held=10)
    assert (reading.on_pods, reading.idle) == (10, 0)
    assert reading.demand >= 40


def test_a_node_that_has_asked_for_nothing_needs_its_primary_and_its_buffer() -> None:
    node = ContainerDemand(StatedDemand(), 1)
    reading = read_demand(replace(SUBNET, holdings={node: 3}), ONE, held=0)
    assert (reading.demand, reading.on_pods, reading.idle) == (0, 0, 0)
    assert reading.need >= 3


@pytest.mark.parametrize(
    ("buffers", "buffer"),
    [([], HALF), (["0.25"], Fraction(1, 4)), (["2", "0.75"], Fraction(3, 4)), (["3", "2"], Fraction(1))],
)
def test_true_need_is_by_batch_1_and_the_smallest_buffer_that_is_configured(
    buffers: list[str], buffer: Fraction
) -> None:
    assert smallest_scaler(map(Fraction, buffers)) == SubnetScaler(1, buffer)


@given(
    st.lists(st.tuples(st.integers(0, 240), st.integers(1, 5)), max_size=6),
    st.sampled_from([1, 2, 8, 16, 24]),
    st.sampled_from([16, 24, 32]),
    st.integers(0, 50),
)
def test_the_reading_is_never_less_than_the_truth_and_never_more_than_is_taken(
    nodes: list[tuple[int, int]], batch: int, top: int, quarantined: int
) -> None:
    batch = min(batch, top)
    holdings: dict[ContainerDemand, int] = {}
    for demand, count in nodes:
        node = holding(demand, batch, top)
        holdings[node] = holdings.get(node, 0) + count
    subnet = replace(
        SUBNET, holdings=holdings, in_force=SubnetScaler(batch, HALF), top=top, ungoverned=quarantined
    )
    held = sum((node.taken - 1) * count for node, count in holdings.items())
    reading = read_demand(subnet, ONE, held)
    truth = sum(demand * count for demand, count in nodes)
    assert truth <= reading.demand
    assert reading.need >= quarantined + sum(
        (1 + request_at(demand, Scaler(1, HALF), 1)) * count for demand, count in nodes
    )
    assert reading.on_pods + reading.idle == held
    if batch < top:
        assert reading.demand == truth
    assert reading.need <= quarantined + held + sum(holdings.values())
