"""A reservation that was seen to be ours is believed to be so for a minute, and then asked for again."""

import asyncio

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench
from podtide.agent.port import NoAddress
from podtide.cluster.port import Conflict, Unavailable
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

POOL = "blue-node-a"
NAME = "blue-10.0.3.1"


async def lose(bench: Bench, name: str = NAME) -> None:
    """Repair, or a person, deletes a reservation."""
    await bench.cluster.delete(OverlappingRangeIPReservation, name, SYSTEM_NAMESPACE)


@pytest.mark.parametrize(("after_seconds", "calls"), [(59.0, 0), (61.0, 1)])
async def test_an_add_repeated_after_a_minute_asks_for_its_reservation_again(
    after_seconds: float, calls: int
) -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        first = await node.add("c1", SLICED)
        await asyncio.sleep(after_seconds)
        node.line.forget()
        assert await node.add("c1", SLICED) == first
        assert node.line.calls["create OverlappingRangeIPReservation"] == calls
        assert node.line.calls["replace IPPool"] == 0


async def test_a_reservation_that_is_gone_is_made_again() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await lose(bench)
        await asyncio.sleep(61)
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert await bench.reserved() == {NAME: "default/pod-of-c1"}
        await asyncio.sleep(59)
        node.line.forget()
        await node.add("c1", SLICED)
        assert not node.line.calls, "it has been seen since"
        await node.delete("c1", SLICED)
        assert await bench.reserved() == {}


async def test_one_that_another_has_by_now_is_not_written_into_the_pool() -> None:
    """An ADD reserved, and could not write the pool for so long that repair took the reservation for a leak."""
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [Conflict("409")] * 1000
        with pytest.raises(NoAddress):
            await node.add("c1", CLASSIC)
        await lose(bench, "10.0.0.1")
        await bench.put_reservation("10.0.0.1", "other/pod")
        await asyncio.sleep(60)
        node.line.before.clear()
        assert await node.add("c1", CLASSIC) == ["10.0.0.2/24"]
        assert set(await bench.pool("10.0.0.0-24")) == {"2"}


async def test_when_the_pool_is_another_object_none_is_believed_however_new() -> None:
    """A network's definition went and came again: its empty pools were collected, and with them what was reserved."""
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [Unavailable("503")] * 1000
        with pytest.raises(NoAddress):
            await node.add("c1", SLICED)
        assert await bench.reserved() == {NAME: "default/pod-of-c1"}
        await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
        await lose(bench)
        await bench.cut(SLICED, "10.0.3.0/24")
        node.line.before.clear()
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        assert await bench.reserved() == {NAME: "default/pod-of-c1"}


async def test_what_was_asked_again_without_an_answer_is_given_up_by_its_holder() -> None:
    """It may have been made anew: then the uid from before is no longer its."""
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        await lose(bench)
        await asyncio.sleep(61)
        node.line.after["create OverlappingRangeIPReservation"] = [Unavailable("the answer was lost")]
        adding = asyncio.create_task(node.add("c1", SLICED))
        await asyncio.sleep(0.001)  # it waits before it tries again
        await node.delete("c1", SLICED)
        await asyncio.gather(adding, return_exceptions=True)
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}
