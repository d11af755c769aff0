"""What the simulation itself must keep to, whichever ready task runs next."""

import asyncio
from collections.abc import AsyncGenerator
from random import Random

import pytest

from podtide.allocator.containers import Wish
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.port import Unavailable, WatchEvent
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import CLUSTER, LineRequest
from podtide.simulation.world.restartable_allocator import RestartableAllocator, open_restartable_allocator

CALLERS = 12


async def _answers(allocator: RestartableAllocator) -> tuple[list[int], list[int]]:
    asked: list[int] = []
    answered: list[int] = []

    async def put(number: int) -> None:
        wish = Wish(
            id=f"c-{number}",
            count=1,
            generation=1,
            network="blue",
            subnet="pods",
            cluster="east",
            node=f"node-{number}",
            request_uid=f"request-{number}",
        )
        asked.append(number)
        if len(asked) == CALLERS // 2:
            half.set()
        await allocator.put_container(wish)
        answered.append(number)

    half = asyncio.Event()
    callers = [asyncio.create_task(put(number)) for number in range(CALLERS)]
    await half.wait()
    callers[asked[2]].cancel()
    await asyncio.wait(callers)
    return [number for number in asked if number in answered], answered


@pytest.mark.parametrize("seed", range(10))
def test_the_allocator_answers_in_the_order_in_which_it_was_asked(seed: int) -> None:
    async def ask() -> tuple[list[int], list[int]]:
        rules = StoreRules()
        async with open_restartable_allocator(clock=LoopClock(), rules=rules) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.0.0.0/24",)))
            return await _answers(allocator)

    asked, answered = virtual_time.run(ask(), Random(seed))
    assert len(answered) >= CALLERS - 1
    assert answered == asked


def test_a_watch_that_is_ending_may_be_ended_once_more() -> None:
    async def end_twice() -> None:
        conditions = Conditions(1, [], lambda _fault, _words: None)
        request = LineRequest(program="agent", port=CLUSTER, verb="watch", subject=NodeNetworkConfig.api.kind)
        watch = asyncio.create_task(anext(conditions.watch(request, _silence())))
        await asyncio.sleep(1)
        conditions.deafen("agent")
        loop = asyncio.get_running_loop()
        loop.call_at(
            loop.time(), lambda: conditions.cut("agent", within_seconds=5.0)
        )  # before the watch's task runs
        began = loop.time()
        with pytest.raises(Unavailable):
            await watch
        assert loop.time() == began

    virtual_time.run(end_twice())


async def _silence() -> AsyncGenerator[WatchEvent[NodeNetworkConfig], None]:
    await asyncio.get_running_loop().create_future()
    yield  # type: ignore[misc]  # never
