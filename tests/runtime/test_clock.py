import asyncio
import time

import pytest

from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock, SystemClock


def test_monotonic_time_only_grows_and_counts_the_time_asleep() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)
    assert readings[0] >= time.monotonic() - 60, "never behind the clock that stands still in sleep"


def test_wall_time_is_the_machines() -> None:
    before = time.time()
    assert before <= SystemClock().wall() <= time.time()


def test_a_loops_clock_that_no_loop_made_is_that_of_whichever_runs() -> None:
    clock = LoopClock(epoch=1000.0)

    async def read_after(seconds: float) -> tuple[float, float]:
        await asyncio.sleep(seconds)
        return clock.monotonic(), clock.wall()

    assert virtual_time.run(read_after(3.0)) == (3.0, 1003.0)
    assert virtual_time.run(read_after(5.0)) == (5.0, 1005.0)
    with pytest.raises(RuntimeError):
        clock.monotonic()


def test_a_loops_clock_that_was_made_on_a_loop_stays_that_loops() -> None:
    async def make() -> LoopClock:
        await asyncio.sleep(7.0)
        return LoopClock()

    assert virtual_time.run(make()).monotonic() == 7.0
