"""Whatever is read of a subnet, however far it is from its rest, the batch does not go up and down on that one reading.

The model of `batch_model` reaches what its nodes do. Nodes of two families, agents of others and those that lost their records
hold, ask for and state what it does not: so here readings are anything.
"""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.test_batch_laws import free_bounds, pinned_bounds
from podtide.core.subnet.batch import BatchInForce, SubnetDecision, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.statement import Statement, inferred_demand, request_at, stated_demand

_BATCHES = st.sampled_from([1, 2, 4, 5, 8, 16, 32])
_BUFFERS = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)])


@st.composite
def holdings(draw: st.DrawFn) -> ContainerDemand:
    """A container that states its demand, or whose agent says nothing, and holds what it should or more."""
    scaler = Scaler(draw(_BATCHES), draw(_BUFFERS))
    demand, of_two = draw(st.integers(0, 40)), draw(st.booleans())
    request = request_at(demand, scaler, 1)
    if draw(st.booleans()):
        statement = Statement(
            demand=demand,
            batch=scaler.batch,
            buffer=scaler.buffer,
            max_ips=scaler.max_ips,
            primaries=1,
            request=request,
            top=draw(st.sampled_from([0, 4, 16])),
        )
        stated = stated_demand(statement, of_two=of_two)
    else:
        stated = inferred_demand(request, scaler, of_two=of_two)
    return ContainerDemand(stated, 1 + request + draw(st.sampled_from([0, 0, 1, 20])))


@st.composite
def readings(draw: st.DrawFn) -> SubnetReading:
    """A subnet at any instant."""
    there = draw(st.lists(holdings(), min_size=1, max_size=6))
    capacity, ungoverned = draw(st.sampled_from([13, 26, 61, 253])), draw(st.integers(0, 8))
    return SubnetReading(
        capacity=capacity,
        reserved=draw(st.integers(0, capacity)),
        containers=len(there),
        owed=draw(st.sampled_from([0, 0, 1, 10])),
        ungoverned=ungoverned,
        holdings=Counter(there),
    )


def decide_again_and_again(
    reading: SubnetReading, bounds: BatchBounds, standing: BatchInForce, age_seconds: float
) -> list[SubnetDecision]:
    """What is decided when nothing changes but what is in force, until that rests."""
    decisions: list[SubnetDecision] = []
    for _ in range(12):
        decision = decide_batch(standing, reading, bounds)
        after = BatchInForce(
            scaler=decision.scaler,
            exhausted=decision.exhausted,
            starved=decision.starved,
            age_seconds=age_seconds,
        )
        if (after.scaler, after.exhausted, after.starved) == (
            standing.scaler,
            standing.exhausted,
            standing.starved,
        ):
            return decisions
        decisions.append(decision)
        standing = after
    pytest.fail(f"it goes on for ever: {', '.join(map(str, decisions[-4:]))}")


@given(
    readings(),
    free_bounds | pinned_bounds,
    st.none() | st.builds(SubnetScaler, _BATCHES, _BUFFERS),
    st.booleans(),
    st.sampled_from([0.0, 45.0, inf]),
)
def test_on_one_reading_the_batch_comes_to_rest(
    reading: SubnetReading,
    bounds: BatchBounds,
    in_force: SubnetScaler | None,
    exhausted: bool,
    age_seconds: float,
) -> None:
    standing = BatchInForce(scaler=in_force, exhausted=exhausted, age_seconds=age_seconds)
    batches = [each.scaler.batch for each in decide_again_and_again(reading, bounds, standing, age_seconds)]
    changes = [(one, other) for one, other in pairwise(batches) if one != other]
    assert len(changes) <= 2
