"""The request formula: examples of the paper, laws, and every word of the explanation."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.strategies import demands, primaries, scalers, uncapped_scalers
from podtide.core.errors import InvalidScaler
from podtide.core.exact import exact
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import RequestBound, decide_request, share_of, to_release
from recordings import cns_targets

HALF = Fraction(1, 2)
USUAL = Scaler(16, HALF)
EXHAUSTED = Scaler(1, Fraction(1))
STARVED = Scaler(1, Fraction(0))


@pytest.mark.parametrize(
    ("demand", "scaler", "held_primaries", "request_", "bound"),
    [
        (25, USUAL, 0, 48, RequestBound.FORMULA),
        (25, USUAL, 1, 47, RequestBound.FORMULA),
        (25, EXHAUSTED, 0, 26, RequestBound.FORMULA),
        (25, EXHAUSTED, 1, 26, RequestBound.FLOOR),
        (25, STARVED, 0, 25, RequestBound.FORMULA),
        (25, STARVED, 1, 25, RequestBound.FLOOR),
        (0, USUAL, 1, 15, RequestBound.FORMULA),
        (0, STARVED, 1, 0, RequestBound.FLOOR),
        (36, USUAL, 0, 48, RequestBound.FORMULA),
        (24, USUAL, 0, 32, RequestBound.FORMULA),
        (250, USUAL, 1, 250, RequestBound.MAX),
        (400, USUAL, 1, 250, RequestBound.MAX),
        (234, USUAL, 6, 250, RequestBound.FORMULA),
    ],
)
def test_requests_of_the_paper(
    demand: int, scaler: Scaler, held_primaries: int, request_: int, bound: RequestBound
) -> None:
    decision = decide_request(demand, scaler, held_primaries)
    assert (decision.request, decision.bound) == (request_, bound)


def test_a_burst_of_35_pods_needs_one_request() -> None:
    """The paper's table: 1 pod and a batch of 16, then 36 pods at once. test_reactive has the baseline's two."""
    assert [decide_request(demand, USUAL).request for demand in (1, 36)] == [16, 48]


@given(uncapped_scalers, primaries, demands, demands)
def test_the_request_is_monotone_in_demand(scaler: Scaler, held: int, one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert decide_request(less, scaler, held).request <= decide_request(more, scaler, held).request


@given(scalers, primaries, demands, demands)
def test_the_request_is_monotone_in_demand_when_capped_too(
    scaler: Scaler, held: int, one: int, other: int
) -> None:
    less, more = sorted((one, other))
    assert decide_request(less, scaler, held).request <= decide_request(more, scaler, held).request


@given(uncapped_scalers, demands)
def test_free_lies_between_m_and_capital_m(scaler: Scaler, demand: int) -> None:
    decision = decide_request(demand, scaler)
    assert scaler.minimum_free <= decision.free < scaler.maximum_free


@given(uncapped_scalers, st.lists(demands, min_size=1, max_size=50))
def test_waste_over_n_nodes_lies_between_m_n_and_capital_m_n(scaler: Scaler, nodes: list[int]) -> None:
    waste = sum(decide_request(demand, scaler).request - demand for demand in nodes)
    assert scaler.minimum_free * len(nodes) <= waste < scaler.maximum_free * len(nodes)


@given(scalers, demands, primaries)
def test_the_total_is_a_multiple_of_the_batch_unless_floor_or_cap_decided(
    scaler: Scaler, demand: int, held: int
) -> None:
    decision = decide_request(demand, scaler, held)
    if decision.bound is RequestBound.FORMULA:
        assert (decision.request + held) % scaler.batch == 0


@given(uncapped_scalers, demands, primaries)
def test_some_address_is_free_whenever_a_buffer_is_asked_for(scaler: Scaler, demand: int, held: int) -> None:
    assume(scaler.buffer > 0)
    assert decide_request(demand, scaler, held).request > demand


@given(scalers, demands, primaries)
def test_never_more_than_the_maximum(scaler: Scaler, demand: int, held: int) -> None:
    decision = decide_request(demand, scaler, held)
    assert 0 <= decision.request <= scaler.max_ips
    assert decision.free - decision.short == decision.request - demand
    assert min(decision.free, decision.short) == 0


@given(scalers, demands, primaries, st.integers(0, 3000), st.integers(0, 3000))
def test_feeding_the_granted_pool_back_is_a_no_op_also_after_an_edit(
    scaler: Scaler, demand: int, held_primaries: int, edited_request: int, held: int
) -> None:
    """Whatever somebody wrote into the request and however large the pool is, one write and one grant end it."""

    def write_and_grant(requested: int, held: int) -> tuple[int, int, bool]:
        target = decide_request(demand, scaler, held_primaries).request
        named = to_release(held, 0, target)
        changed = target != requested or named > 0
        return target, max(held - named, target), changed

    requested, held, _ = write_and_grant(edited_request, held)
    assert held == requested
    assert write_and_grant(requested, held) == (requested, held, False)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_release_counts_what_is_held_and_not_yet_named(held: int, named: int, request: int) -> None:
    named = min(named, held)
    more = to_release(held, named, request)
    assert more >= 0
    assert held - named - more <= max(request, held - named)
    if more:
        assert held - named - more == request
    assert to_release(held, named + more, request) == 0


def test_release_where_cns_would_error() -> None:
    """The scarce case of the real CNS: asked 48, held 32, 5 assigned, exhausted. It names 26 and keeps 6."""
    assert to_release(32, 0, decide_request(5, EXHAUSTED).request) == 26


@pytest.mark.parametrize(
    ("demand", "held", "words"),
    [
        (-1, 0, "demand -1 is negative: it is a count of pods, 0 or more"),
        (0, -1, "-1 primaries is negative: it is a count of network containers, 0 or more"),
    ],
)
def test_negative_counts_are_refused(demand: int, held: int, words: str) -> None:
    with pytest.raises(InvalidScaler) as refused:
        decide_request(demand, USUAL, held)
    assert str(refused.value) == words


def test_a_decision_explains_itself_in_one_line() -> None:
    assert str(decide_request(25, USUAL, 1)) == "request 47 = 16·⌈0.5 + 25/16⌉ - 1; demand 25, 22 free"
    assert str(decide_request(25, EXHAUSTED, 1)) == "request 26 = demand 25 + 1 kept free; demand 25, 1 free"
    assert str(decide_request(25, STARVED, 1)) == "request 25 = demand 25 + 0 kept free; demand 25, 0 free"
    assert str(decide_request(300, USUAL, 1)) == (
        "request 250 = the node's maximum, 319 wanted; demand 300, 50 short"
    )
    assert str(decide_request(249, Scaler(1, Fraction(1), 249), 1)) == (
        "request 249 = the node's maximum, 250 wanted; demand 249, 0 free"
    )


def test_a_decision_shows_the_formula_with_its_numbers() -> None:
    assert decide_request(25, USUAL, 1).steps() == (
        "aligned = B·⌈mf + U/B⌉ = 16·⌈0.5 + 25/16⌉ = 48",
        "request = min(max, max(aligned - P, U + 1)) = min(250, max(48 - 1, 25 + 1)) = 47",
        "free    = request - U = 47 - 25 = 22",
        "thresholds: m = mf·B = 8, M = (mf + 1)·B = 24",
    )


def test_a_decision_for_no_pods_and_for_too_many_explains_itself_too() -> None:
    assert str(decide_request(0, EXHAUSTED, 1)) == "request 1 = demand 0 + 1 kept free; demand 0, 1 free"
    assert decide_request(0, STARVED).steps() == (
        "aligned = B·⌈mf + U/B⌉ = 1·⌈0 + 0/1⌉ = 0",
        "request = min(max, max(aligned - P, U + 0)) = min(250, max(0 - 0, 0 + 0)) = 0",
        "free    = request - U = 0 - 0 = 0",
        "thresholds: m = mf·B = 0, M = (mf + 1)·B = 1",
    )
    assert decide_request(300, USUAL).steps()[2] == "free    = request - U = 250 - 300 = -50"


def test_a_decision_is_a_value() -> None:
    decisions = {decide_request(25, USUAL, 1), decide_request(25, USUAL, 1), decide_request(25, USUAL)}
    assert len(decisions) == 2


@pytest.mark.parametrize(
    ("request_", "containers", "share"),
    [(16, 1, 16), (300, 1, 300), (16, 2, 8), (17, 2, 9), (1, 2, 1), (249, 3, 83), (250, 3, 83)],
)
def test_of_several_containers_each_holds_its_share_rounded_up_and_all_together_no_more_than_the_maximum(
    request_: int, containers: int, share: int
) -> None:
    assert share_of(request_, containers, max_ips=250) == share


@pytest.mark.parametrize("row", cns_targets(), ids=str)
def test_targets_agree_with_what_cns_computed(row: tuple[int, int, float, int, list[int]]) -> None:
    demand, batch, buffer, target, clamped = row
    assert decide_request(demand, Scaler(batch, exact(buffer), 10**9)).request == target
    assert [
        decide_request(demand, Scaler(batch, exact(buffer), cap)).request for cap in (30, 100, 250)
    ] == clamped
