from fractions import Fraction

import pytest

from podtide.core.reactive import ReactivePool, decide_reactive_request
from podtide.core.scaler import Scaler

USUAL = Scaler(16, Fraction(1, 2))


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
        (ReactivePool(requested=8, held=40, assigned=0), 0),
    ],
)
def test_one_batch_at_a_time_from_the_last_request(pool: ReactivePool, wanted: int) -> None:
    assert decide_reactive_request(pool, USUAL) == wanted


def test_thresholds_are_rounded_half_up() -> None:
    scaler = Scaler(3, Fraction(1, 2))  # m = 1.5 → 2, M = 4.5 → 5
    assert decide_reactive_request(ReactivePool(requested=3, held=3, assigned=2), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=3, held=3, assigned=1), scaler) == 3
    assert decide_reactive_request(ReactivePool(requested=6, held=6, assigned=2), scaler) == 6
    assert decide_reactive_request(ReactivePool(requested=6, held=6, assigned=1), scaler) == 3


def test_a_misaligned_request_stays_misaligned() -> None:
    requested = 21
    for assigned in (14, 30, 46, 62):
        requested = decide_reactive_request(ReactivePool(requested, requested, assigned), USUAL)
        assert requested % 16 == 21 % 16


def test_a_burst_of_35_pods_takes_it_one_round_trip_per_batch() -> None:
    requested, trips = 16, []
    while (
        wanted := decide_reactive_request(ReactivePool(requested, requested, min(36, requested)), USUAL)
    ) != requested:
        requested = wanted
        trips.append(requested)
    assert trips == [32, 48]
