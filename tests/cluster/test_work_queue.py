import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.work_queue import WorkQueue
from podtide.runtime import virtual_time
from podtide.runtime.virtual_time import Deadlock


async def is_empty(queue: WorkQueue[str]) -> bool:
    """Whether there is nothing to take now."""
    try:
        await asyncio.wait_for(queue.take(), 0.001)
    except TimeoutError:
        return True
    return False


async def test_keys_come_out_in_the_order_they_were_added_each_once() -> None:
    queue = WorkQueue[str]()
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)
    assert [await queue.take() for _ in range(3)] == ["a", "b", "c"]
    assert await is_empty(queue)


async def test_a_key_added_while_it_is_worked_on_is_handed_out_once_more_when_that_is_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert await is_empty(queue)
    queue.done("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert await is_empty(queue)


async def test_of_several_times_for_a_key_the_earliest_counts() -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str]()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    assert await queue.take() == "a"
    assert loop.time() == pytest.approx(10)
    queue.done("a")
    queue.add_after("a", 90)
    assert await queue.take() == "a"
    assert loop.time() == pytest.approx(100)


async def test_a_key_that_is_added_now_is_still_looked_at_again_at_its_time() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 10)
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert await queue.take() == "a"
    assert asyncio.get_running_loop().time() == pytest.approx(10)


async def test_a_worker_that_gives_up_waiting_takes_nothing_with_it() -> None:
    queue = WorkQueue[str]()
    impatient, patient = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await asyncio.sleep(1)
    queue.add("a")
    impatient.cancel()
    assert await patient == "a"


def test_an_idle_queue_sets_no_timer() -> None:
    async def wait_for_work() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        queue.add_after("a", 5)
        for _ in range(2):
            await queue.take()
            queue.done("a")
        await queue.take()

    with pytest.raises(Deadlock):
        virtual_time.run(wait_for_work())


keys = st.sampled_from("abc")
moments = st.integers(0, 40).map(lambda tenths: tenths / 10)
additions = st.lists(st.tuples(moments, keys, st.none() | moments), max_size=30)
"""When a key is added, which, and with what delay if any."""


@given(additions, st.integers(1, 4), st.lists(moments, min_size=1, max_size=10))
def test_nothing_added_is_lost_and_no_key_is_ever_with_two_workers(
    plan: list[tuple[float, str, float | None]], workers: int, efforts: list[float]
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        queue = WorkQueue[str]()
        taken: list[tuple[float, str]] = []
        at_work: set[str] = set()

        async def work() -> None:
            while True:
                key = await queue.take()
                assert key not in at_work
                at_work.add(key)
                taken.append((loop.time(), key))
                await asyncio.sleep(efforts[len(taken) % len(efforts)])
                at_work.remove(key)
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            working = [group.create_task(work()) for _ in range(workers)]
            for moment, key, delay in sorted(plan, key=lambda step: step[0]):
                await asyncio.sleep(moment - loop.time())
                if delay is None:
                    queue.add(key)
                else:
                    queue.add_after(key, delay)
            await asyncio.sleep(1000)
            assert not at_work
            for each in working:
                each.cancel()
        for moment, key, _delay in plan:
            assert any(name == key and at >= moment - 1e-9 for at, name in taken)
        assert len(taken) <= len(plan)

    virtual_time.run(scenario())
