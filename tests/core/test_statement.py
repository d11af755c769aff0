"""What a statement tells of a container's demand, and what a request without one does."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from podtide.core.plan.reactive_pool import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.scaling import decide_request
from podtide.core.subnet.statement import (
    StatedDemand,
    Statement,
    demand_window,
    inferred_demand,
    request_at,
    stated_demand,
    taken_at,
)

buffers = st.sampled_from(
    [Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3, 2)]
)
scalers = st.builds(Scaler, batch=st.integers(1, 64), buffer=buffers, max_ips=st.integers(1, 250))


def statement(demand: int, scaler: Scaler, primaries: int = 1, top: int = 0) -> Statement:
    return Statement(
        demand=demand,
        batch=scaler.batch,
        buffer=scaler.buffer,
        max_ips=scaler.max_ips,
        primaries=primaries,
        request=request_at(demand, scaler, primaries),
        top=top,
    )


def test_the_window_of_a_request_at_batch_16() -> None:
    assert demand_window(statement(15, Scaler())) == (9, 24)
    assert demand_window(statement(0, Scaler())) == (0, 8)
    assert demand_window(statement(30, Scaler(max_ips=30))) == (9, 30)


def test_the_window_at_batch_1_is_the_demand_itself() -> None:
    assert demand_window(statement(15, Scaler(1, Fraction(1)))) == (15, 15)


@given(st.integers(0, 300), scalers, st.integers(1, 3))
@example(250, Scaler(64, Fraction(1), 250), 1)
def test_the_window_is_all_demands_of_one_request(demand: int, scaler: Scaler, primaries: int) -> None:
    stated = statement(demand, scaler, primaries)
    low, high = demand_window(stated)
    assert low <= min(demand, scaler.max_ips) <= high
    for inside in (low, high):
        assert request_at(inside, scaler, primaries) == stated.request
    if low:
        assert request_at(low - 1, scaler, primaries) != stated.request
    if high < scaler.max_ips:
        assert request_at(high + 1, scaler, primaries) != stated.request


@given(st.integers(0, 300), scalers, st.integers(1, 64))
def test_what_a_container_takes_lies_within_its_window_at_every_batch(
    demand: int, scaler: Scaler, batch: int
) -> None:
    stated = stated_demand(statement(demand, scaler))
    rung = SubnetScaler(batch, scaler.buffer)
    assert (
        taken_at(stated.low, stated, rung)
        <= taken_at(demand, stated, rung)
        <= taken_at(stated.high, stated, rung)
    )


def test_h_is_the_primary_and_the_request() -> None:
    assert taken_at(15, StatedDemand(), SubnetScaler(16, Fraction(1, 2))) == 32
    assert taken_at(15, StatedDemand(primaries=0), SubnetScaler(16, Fraction(1, 2))) == 33
    assert taken_at(15, StatedDemand(max_ips=12), SubnetScaler(16, Fraction(1, 2))) == 13


def test_a_demand_is_known_itself_only_below_the_top() -> None:
    assert stated_demand(statement(15, Scaler(8), top=16)).demand == 15
    assert stated_demand(statement(15, Scaler(16), top=16)).demand is None
    assert stated_demand(statement(15, Scaler(16))).demand is None


def test_a_request_that_does_not_follow_from_the_rest_is_a_mistake() -> None:
    good = statement(15, Scaler())
    assert good.is_consistent
    assert not Statement(
        **{field: getattr(good, field) for field in good.__struct_fields__} | {"request": 40}
    ).is_consistent


def test_an_agent_that_asked_for_nothing_yet() -> None:
    assert inferred_demand(0, Scaler()).is_empty
    assert not inferred_demand(1, Scaler()).is_empty


@given(st.integers(0, 250), scalers)
def test_the_window_of_azure_cns_v2_has_the_demand_in_it(demand: int, scaler: Scaler) -> None:
    request = decide_request(demand, scaler, primaries=0).request
    known = inferred_demand(request, scaler)
    assert known.is_empty or known.low <= min(demand, scaler.max_ips) <= known.high


@given(st.integers(0, 250), st.integers(1, 64), st.integers(16, 250))
def test_the_window_of_podtide_before_statements_has_the_demand_in_it(
    demand: int, batch: int, most: int
) -> None:
    scaler = Scaler(min(batch, most), Fraction(1, 2), most)
    known = inferred_demand(request_at(demand, scaler, 1), scaler)
    assert known.low <= min(demand, most) <= known.high


@given(st.integers(0, 200), st.sampled_from([4, 8, 16, 32]))
def test_the_window_of_azure_cns_v1_has_the_demand_in_it(assigned: int, batch: int) -> None:
    scaler = Scaler(batch)
    requested = 0
    for _ in range(100):
        pool = ReactivePool(requested, requested, assigned)
        requested, before = decide_reactive_request(pool, scaler), requested
        if requested == before:
            break
    known = inferred_demand(requested, scaler)
    assert known.low <= assigned <= known.high
