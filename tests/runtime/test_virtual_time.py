import asyncio
import gc
import time
from random import Random

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


def order_of_five_tasks(order: Random | None) -> list[int]:
    """In which order five tasks take each of three steps."""
    seen: list[int] = []

    async def step(number: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(number)

    async def main() -> None:
        await asyncio.gather(*map(step, range(5)))

    virtual_time.run(main(), order)
    return seen


def test_ready_tasks_run_in_the_order_in_which_they_became_ready() -> None:
    assert order_of_five_tasks(None) == [0, 1, 2, 3, 4] * 3


def test_an_order_that_is_drawn_is_another_one_for_each_seed_and_the_same_for_one() -> None:
    orders = {seed: order_of_five_tasks(Random(seed)) for seed in range(8)}
    assert len({tuple(order) for order in orders.values()}) == len(orders)
    assert all(order_of_five_tasks(Random(seed)) == order for seed, order in orders.items())
    assert all(sorted(order) == sorted([0, 1, 2, 3, 4] * 3) for order in orders.values())


def test_callbacks_that_are_no_tasks_keep_their_order_whatever_is_drawn() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(5)]
        for number in range(10):
            loop.call_soon(seen.append, number)
        await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        return seen

    assert all(virtual_time.run(main(), Random(seed)) == list(range(10)) for seed in range(5))
