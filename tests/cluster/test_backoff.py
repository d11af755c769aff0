import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.port import ClusterError, Forbidden, Throttled, Unavailable
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness

seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 100_000))
def test_a_wait_lies_between_the_floor_and_the_cap(seed: int, failures: int) -> None:
    assert 1.0 <= Backoff().delay_seconds(failures, seeded_randomness(seed)) <= 30.0


@given(seeds, st.integers(1, 4))
def test_the_ceiling_doubles_with_every_failure(seed: int, failures: int) -> None:
    assert Backoff().delay_seconds(failures, seeded_randomness(seed)) <= 2**failures


def test_clients_that_failed_together_do_not_come_back_together() -> None:
    waits = sorted(Backoff().delay_seconds(9, seeded_randomness(client)) for client in range(3000))
    busiest_second = max(sum(1 for wait in waits if second <= wait < second + 1) for second in range(31))
    assert busiest_second < 3000 / 30 * 2


@given(seeds, st.floats(0, 600), st.integers(1, 20))
def test_a_server_that_names_a_time_is_obeyed(seed: int, retry_after: float, failures: int) -> None:
    error = Throttled("slow down", retry_after_seconds=retry_after)
    wait = Backoff().delay_seconds(failures, seeded_randomness(seed), error)
    assert retry_after <= wait <= max(30.0, retry_after + 1.0)


def test_those_who_were_told_the_same_time_are_spread_over_a_second() -> None:
    error = Throttled("slow down", retry_after_seconds=60.0)
    waits = {round(Backoff().delay_seconds(1, seeded_randomness(client), error), 1) for client in range(200)}
    assert len(waits) == 11


@pytest.mark.parametrize(
    ("error", "least", "most"), [(Unavailable("down"), 720, 1800), (Forbidden("no right"), 120, 300)]
)
async def test_a_server_that_fails_for_an_hour_is_asked_by_each_so_often(
    error: ClusterError, least: int, most: int
) -> None:
    clock = LoopClock()
    streak = FailureStreak(Backoff(), clock, seeded_randomness(1))
    requests = 0
    while clock.monotonic() < 3600:
        requests += 1
        await asyncio.sleep(streak.delay_seconds(error))
    assert least <= requests <= most


@given(seeds, st.integers(1, 100_000), st.floats(0.005, 60.0), st.floats(1.0, 600.0))
def test_nobody_waits_longer_than_five_seconds_for_a_server_that_is_away(
    seed: int, failures: int, floor: float, cap: float
) -> None:
    rule = Backoff(floor_seconds=floor, cap_seconds=cap)
    wait = rule.delay_seconds(failures, seeded_randomness(seed), Unavailable("no route to host"))
    assert 0 < wait <= 5.0


@given(seeds)
def test_the_first_wait_may_be_spread_over_more_than_twice_the_floor(seed: int) -> None:
    rule = Backoff(floor_seconds=0.2, first_ceiling_seconds=1.0)
    assert 0.2 <= rule.delay_seconds(1, seeded_randomness(seed)) <= 1.0
    assert 0.2 <= rule.delay_seconds(2, seeded_randomness(seed)) <= 2.0


class AlwaysLongest(Random):
    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


async def test_a_success_that_does_not_last_does_not_end_the_streak() -> None:
    streak = FailureStreak(Backoff(), LoopClock(), AlwaysLongest(), calm_seconds=30.0)
    waits = []
    for _ in range(6):
        waits.append(streak.delay_seconds())
        await asyncio.sleep(waits[-1] + 29.9)
        assert not streak.is_over
    assert waits == [2, 4, 8, 16, 30, 30]


async def test_a_connection_that_held_for_a_while_starts_anew() -> None:
    streak = FailureStreak(Backoff(), LoopClock(), AlwaysLongest(), calm_seconds=30.0)
    assert streak.is_over
    for _ in range(6):
        await asyncio.sleep(streak.delay_seconds())
    await asyncio.sleep(30.0)
    assert streak.is_over
    assert streak.delay_seconds() == 2
