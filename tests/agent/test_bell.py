import asyncio

from podtide.runtime.clock import LoopClock
from podtide.runtime.wakeup import Bell


async def test_a_bell_rung_often_while_nobody_listens_wakes_once() -> None:
    bell = Bell(LoopClock())
    for _ in range(10):
        bell.ring()
    assert await bell.wait() == 0.0
    assert await bell.wait(7.0) == 7.0


async def test_whoever_waits_hears_the_bell_at_once() -> None:
    bell = Bell(LoopClock())
    asyncio.get_running_loop().call_later(3.0, bell.ring)
    assert await bell.wait(10.0) == 3.0


async def test_after_a_whole_sleep_it_is_never_told_that_it_is_too_early() -> None:
    class SlowClock(LoopClock):
        def monotonic(self) -> float:
            return super().monotonic() * (1 - 1e-15)

    bell = Bell(SlowClock())
    assert await bell.wait(1.1) >= 1.1


async def test_who_is_in_no_hurry_looks_once_at_what_comes_within_a_moment() -> None:
    bell = Bell(LoopClock(), settle_seconds=0.5)
    loop = asyncio.get_running_loop()
    for seconds in (1.0, 1.2, 1.4):
        loop.call_later(seconds, bell.ring)
    assert await bell.wait() == 1.5
    assert bell.rung_at == 1.4
    assert await bell.wait(10.0) == 10.0


async def test_who_is_in_no_hurry_settles_also_after_what_rang_while_nobody_listened() -> None:
    bell = Bell(LoopClock(), settle_seconds=0.5)
    bell.ring()
    await asyncio.sleep(3.0)
    assert await bell.wait() == 3.5


async def test_what_is_due_does_not_wait_for_things_to_settle() -> None:
    bell = Bell(LoopClock(), settle_seconds=0.5)
    asyncio.get_running_loop().call_later(1.9, bell.ring)
    assert await bell.wait(2.0) == 2.0
    assert await bell.wait(7.0) == 7.0


async def test_one_who_stops_waiting_leaves_no_timer_behind() -> None:
    bell = Bell(LoopClock(), settle_seconds=0.5)
    waiting = asyncio.create_task(bell.wait(60.0))
    await asyncio.sleep(0)
    bell.ring()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    bell.ring()
    assert await bell.wait(0.0) == 0.0


async def test_what_is_due_already_gives_others_a_turn() -> None:
    bell = Bell(LoopClock())
    turns = []
    other = asyncio.create_task(asyncio.sleep(0))
    other.add_done_callback(lambda _: turns.append("other"))
    for _ in range(3):
        assert await bell.wait(0.0) == 0.0
    assert turns == ["other"]
