import asyncio
import gc
import time

import pytest

from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock


async def test_a_day_of_sleep_takes_no_time() -> None:
    before = time.monotonic()
    clock = LoopClock(epoch=1000.0)
    await asyncio.sleep(86_400)
    assert clock.monotonic() == pytest.approx(86_400)
    assert clock.wall() == pytest.approx(87_400)
    assert time.monotonic() - before < 60


async def test_timers_fire_in_the_order_of_their_times() -> None:
    seen: list[int] = []

    async def note(after: int) -> None:
        await asyncio.sleep(after)
        seen.append(after)

    await asyncio.gather(*(note(after) for after in (30, 10, 20)))
    assert seen == [10, 20, 30]


def test_waiting_for_what_cannot_come_is_a_deadlock_not_a_hang() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(virtual_time.Deadlock):
        virtual_time.run(wait())


def test_garbage_is_looked_for_seldom_while_it_lasts_and_as_before_afterwards() -> None:
    async def thresholds() -> tuple[int, int, int]:
        return gc.get_threshold()

    tests = gc.get_threshold()  # which collect as seldom
    gc.set_threshold(700, 10, 10)
    try:
        assert virtual_time.run(thresholds())[0] > 700
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*tests)
