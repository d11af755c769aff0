import asyncio

from podtide.agent.bell import Bell
from podtide.runtime.clock import LoopClock


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


async def test_what_is_due_already_gives_others_a_turn() -> None:
    bell = Bell(LoopClock())
    turns = []
    other = asyncio.create_task(asyncio.sleep(0))
    other.add_done_callback(lambda _: turns.append("other"))
    for _ in range(3):
        assert await bell.wait(0.0) == 0.0
    assert turns == ["other"]
