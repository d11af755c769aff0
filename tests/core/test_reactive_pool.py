from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.core.subnet.reactive_pool import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler

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
