"""The reactive pool of Azure CNS: its steps, and where they end."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.exact import exact
from podtide.core.plan.reactive_pool import (
    ReactivePool,
    RestingRequest,
    decide_reactive_request,
    resting_request,
)
from podtide.core.subnet.scaler import Scaler
from recordings import cns_targets

USUAL = Scaler(16, Fraction(1, 2))
EXHAUSTED = Scaler(1, Fraction(1))


def test_recorded_growth_from_10_by_batches_of_3_asks_for_12_and_not_13() -> None:
    pool = ReactivePool(requested=10, held=10, assigned=10)
    assert decide_reactive_request(pool, Scaler(3, Fraction(1, 2))) == 12


def test_recorded_shrinking_from_a_limit_of_30_by_batches_of_16_releases_14_and_not_16() -> None:
    pool = ReactivePool(requested=30, held=30, assigned=5)
    assert decide_reactive_request(pool, Scaler(16, Fraction(1, 2), max_ips=30)) == 16


@pytest.mark.parametrize(
    ("pool", "wanted"),
    [
        (ReactivePool(requested=16, held=16, assigned=8), 16),
        (ReactivePool(requested=16, held=16, assigned=9), 32),
        (ReactivePool(requested=32, held=16, assigned=16), 32),
        (ReactivePool(requested=32, held=32, assigned=9), 32),
        (ReactivePool(requested=32, held=32, assigned=8), 16),
        (ReactivePool(requested=32, held=32, assigned=0, releasing=9), 32),
        (ReactivePool(requested=240, held=240, assigned=239), 250),
        (ReactivePool(requested=250, held=250, assigned=250), 250),
        (ReactivePool(requested=260, held=250, assigned=253), 250),
        (ReactivePool(requested=8, held=40, assigned=0), 0),
    ],
)
def test_one_batch_at_a_time_from_the_last_request(pool: ReactivePool, wanted: int) -> None:
    assert decide_reactive_request(pool, USUAL) == wanted


def test_growth_goes_by_what_is_requested_and_shrinking_by_what_is_held() -> None:
    on_its_way = ReactivePool(requested=48, held=16, assigned=16)
    assert decide_reactive_request(on_its_way, USUAL) == 48
    not_yet_taken_back = ReactivePool(requested=16, held=32, assigned=8)
    assert decide_reactive_request(not_yet_taken_back, USUAL) == 0
    named_for_release = ReactivePool(requested=16, held=32, assigned=8, releasing=16)
    assert decide_reactive_request(named_for_release, USUAL) == 16


def test_too_little_goes_before_too_much() -> None:
    both = ReactivePool(requested=8, held=40, assigned=2)
    assert decide_reactive_request(both, USUAL) == 16


def test_thresholds_are_rounded_half_up() -> None:
    scaler = Scaler(3, Fraction(1, 2))  # m = 1.5 → 2, M = 4.5 → 5
    assert decide_reactive_request(ReactivePool(requested=3, held=3, assigned=2), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=3, held=3, assigned=1), scaler) == 3
    assert decide_reactive_request(ReactivePool(requested=6, held=6, assigned=2), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=6, held=6, assigned=1), scaler) == 3


@pytest.mark.parametrize(("assigned", "wanted"), [(21, 22), (20, 21), (19, 20), (5, 20)])
def test_an_exhausted_subnet_keeps_one_free_and_moves_by_one(assigned: int, wanted: int) -> None:
    pool = ReactivePool(requested=21, held=21, assigned=assigned)
    assert decide_reactive_request(pool, EXHAUSTED) == wanted


def test_a_batch_of_1_with_half_of_it_free_keeps_1_free_and_gives_back_at_2() -> None:
    scaler = Scaler(1, Fraction(1, 2))  # m = 0.5 → 1, M = 1.5 → 2
    assert decide_reactive_request(ReactivePool(requested=5, held=5, assigned=5), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=6, held=6, assigned=5), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=7, held=7, assigned=5), scaler) == 6


def test_less_than_1_percent_free_counts_as_1_and_more_than_a_batch_as_a_batch() -> None:
    nothing_free = ReactivePool(requested=50, held=50, assigned=50)
    assert decide_reactive_request(nothing_free, Scaler(50, Fraction(0))) == 100
    a_batch_free = ReactivePool(requested=32, held=32, assigned=16)
    assert decide_reactive_request(a_batch_free, Scaler(16, Fraction(3, 2))) == 32


def test_a_batch_above_the_limit_counts_as_the_limit() -> None:
    scaler = Scaler(40, Fraction(1, 2), max_ips=30)  # m = 15, M = 45
    assert decide_reactive_request(ReactivePool(requested=30, held=45, assigned=0), scaler) == 0
    assert decide_reactive_request(ReactivePool(requested=10, held=10, assigned=0), scaler) == 30


@given(
    requested=st.integers(0, 300),
    held=st.integers(0, 300),
    assigned=st.integers(0, 300),
    batch=st.integers(1, 40),
)
def test_a_step_ends_at_a_multiple_of_the_batch_or_at_the_limit(
    requested: int, held: int, assigned: int, batch: int
) -> None:
    scaler = Scaler(batch, Fraction(1, 2), max_ips=250)
    wanted = decide_reactive_request(ReactivePool(requested, held, assigned), scaler)
    assert wanted == requested or wanted % batch == 0 or wanted == scaler.max_ips


def test_a_request_edited_out_of_band_is_back_at_a_multiple_after_one_step() -> None:
    assert decide_reactive_request(ReactivePool(requested=21, held=21, assigned=14), USUAL) == 32
    assert decide_reactive_request(ReactivePool(requested=37, held=37, assigned=10), USUAL) == 32


def test_a_burst_of_35_pods_takes_it_one_round_trip_per_batch() -> None:
    requested, trips = 16, []
    while (
        wanted := decide_reactive_request(ReactivePool(requested, requested, min(36, requested)), USUAL)
    ) != requested:
        requested = wanted
        trips.append(requested)
    assert trips == [32, 48]


def test_next_to_the_limit_history_decides_where_the_pool_rests() -> None:
    assert resting_request(230, USUAL) == RestingRequest(240, 250)
    assert resting_request(226, USUAL) == RestingRequest(240, 240)
    assert resting_request(233, USUAL) == RestingRequest(250, 250)


def steps_from(requested: int, assigned: int, scaler: Scaler) -> int:
    """Where the pool comes to rest if every request is granted in full."""
    for _ in range(1000):
        wanted = decide_reactive_request(ReactivePool(requested, requested, assigned), scaler)
        if wanted == requested:
            return requested
        requested = wanted
    raise AssertionError("it never rests")


@given(
    assigned=st.integers(0, 250),
    batch=st.integers(1, 40),
    buffer=st.builds(Fraction, st.integers(0, 150), st.just(100)),
    max_ips=st.integers(1, 250),
)
def test_from_above_and_from_below_the_pool_rests_at_the_bounds(
    assigned: int, batch: int, buffer: Fraction, max_ips: int
) -> None:
    scaler = Scaler(batch, buffer, max_ips)
    resting = resting_request(assigned, scaler)
    assert steps_from(0, assigned, scaler) == resting.least
    assert steps_from(max_ips, assigned, scaler) == resting.most


def whole_targets() -> list[list[Any]]:
    """The recorded targets whose m is a whole number and whose buffer version 1 knows."""
    return [
        row
        for row in cns_targets()
        if Fraction(1, 100) <= exact(row[2]) <= 1 and (exact(row[2]) * row[1]).denominator == 1
    ]


@pytest.mark.parametrize("row", whole_targets(), ids=str)
def test_it_rests_at_the_target_that_version_2_of_azure_cns_computes(row: list[Any]) -> None:
    demand, batch, buffer, target, clamped = row
    assert resting_request(demand, Scaler(batch, exact(buffer), 10**6)) == RestingRequest(target, target)
    for max_ips, most in zip((30, 100, 250), clamped, strict=True):
        if batch <= max_ips:
            assert resting_request(demand, Scaler(batch, exact(buffer), max_ips)).least == most


def test_a_third_of_the_recorded_targets_are_compared() -> None:
    assert len(whole_targets()) > 90
