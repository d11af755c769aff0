import asyncio

from podtide.runtime.clock import LoopClock
from podtide.runtime.wakeup import Wakeup


async def test_a_loop_woken_often_while_it_works_runs_once_more() -> None:
    wakeup = Wakeup(LoopClock())
    for _ in range(10):
        wakeup.wake()
    assert await wakeup.wait() == 0.0
    assert await wakeup.wait(7.0) == 7.0


async def test_a_sleeping_loop_is_woken_at_once() -> None:
    wakeup = Wakeup(LoopClock())
    asyncio.get_running_loop().call_later(3.0, wakeup.wake)
    assert await wakeup.wait(10.0) == 3.0


async def test_after_a_whole_sleep_the_time_is_never_before_its_end() -> None:
    class SlowClock(LoopClock):
        def monotonic(self) -> float:
            return super().monotonic() * (1 - 1e-15)

    wakeup = Wakeup(SlowClock())
    assert await wakeup.wait(1.1) >= 1.1


async def test_a_burst_within_the_settling_time_wakes_once() -> None:
    wakeup = Wakeup(LoopClock(), settle_seconds=0.5)
    loop = asyncio.get_running_loop()
    for seconds in (1.0, 1.2, 1.4):
        loop.call_later(seconds, wakeup.wake)
    assert await wakeup.wait() == 1.5
    assert wakeup.woken_at == 1.4
    assert await wakeup.wait(10.0) == 10.0


async def test_it_settles_also_after_a_wake_while_the_loop_worked() -> None:
    wakeup = Wakeup(LoopClock(), settle_seconds=0.5)
    wakeup.wake()
    await asyncio.sleep(3.0)
    assert await wakeup.wait() == 3.5


async def test_what_is_due_does_not_wait_for_things_to_settle() -> None:
    wakeup = Wakeup(LoopClock(), settle_seconds=0.5)
    asyncio.get_running_loop().call_later(1.9, wakeup.wake)
    assert await wakeup.wait(2.0) == 2.0
    assert await wakeup.wait(7.0) == 7.0


async def test_one_who_stops_waiting_leaves_no_timer_behind() -> None:
    wakeup = Wakeup(LoopClock(), settle_seconds=0.5)
    waiting = asyncio.create_task(wakeup.wait(60.0))
    await asyncio.sleep(0)
    wakeup.wake()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    wakeup.wake()
    assert await wakeup.wait(0.0) == 0.0


async def test_what_is_due_already_gives_others_a_turn() -> None:
    wakeup = Wakeup(LoopClock())
    turns = []
    other = asyncio.create_task(asyncio.sleep(0))
    other.add_done_callback(lambda _: turns.append("other"))
    for _ in range(3):
        assert await wakeup.wait(0.0) == 0.0
    assert turns == ["other"]
