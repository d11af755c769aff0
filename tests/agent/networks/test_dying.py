"""An agent may die between any two of its calls: what that leaves behind heals, and no live address is given twice."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench, Machine, owner
from podtide.core.ranges import parse_network
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE

LONGER_THAN_ANY_LIFE = 40


class Runtime:
    """What the container runtime knows: which sandboxes got an answer, and live."""

    def __init__(self, ipam: dict[str, Any]) -> None:
        self.ipam = ipam
        self.living: dict[str, str] = {}
        self.to_delete: list[str] = []

    async def live(self, node: Machine) -> None:
        for sandbox in ("c1", "c2"):
            await self.add(node, sandbox)
        await self.delete(node, "c1")
        await self.add(node, "c3")

    async def add(self, node: Machine, sandbox: str) -> None:
        self.to_delete.append(sandbox)
        [self.living[sandbox]] = await node.add(owner(sandbox), self.ipam)
        self.to_delete.remove(sandbox)

    async def delete(self, node: Machine, sandbox: str) -> None:
        self.to_delete.append(sandbox)
        await node.delete(owner(sandbox), self.ipam)
        self.to_delete.remove(sandbox)
        del self.living[sandbox]

    async def clean_up(self, node: Machine) -> None:
        """As a runtime does: a sandbox whose ADD or DEL was not answered is deleted."""
        for sandbox in self.to_delete:
            await node.delete(owner(sandbox), self.ipam)
            self.living.pop(sandbox, None)
        self.to_delete.clear()


async def held(bench: Bench) -> dict[str, str]:
    """Which sandbox has which address by the pools."""
    pools = await bench.cluster.list(IPPool, SYSTEM_NAMESPACE)
    return {
        str(parse_network(pool.spec.range)[int(key)]): entry.id
        for pool in pools.items
        for key, entry in pool.spec.allocations.items()
    }


async def require_all_reserved(bench: Bench) -> None:
    """An allocation that other pools do not see could be given twice."""
    reserved = {name.removeprefix("blue-") for name in await bench.reserved()}
    assert set(await held(bench)) <= reserved


@pytest.mark.parametrize("ipam", [CLASSIC, SLICED], ids=["classic", "sliced"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_death_at_any_call_leaves_what_heals(ipam: dict[str, Any], when: str) -> None:
    for number in range(1, LONGER_THAN_ANY_LIFE):
        bench = Bench()
        if ipam is SLICED:
            await bench.cut(SLICED, "10.0.3.0/24")
        runtime = Runtime(ipam)
        async with bench.machine() as node:
            node.line.dies_at = (number, when)
            living = asyncio.create_task(runtime.live(node))
            dying = asyncio.create_task(node.line.died.wait())
            await asyncio.wait({living, dying}, return_when=asyncio.FIRST_COMPLETED)
            died = dying.done()
            for task in (living, dying):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await require_all_reserved(bench)
        async with bench.machine() as node:
            await runtime.clean_up(node)
            await runtime.add(node, "next")
            await require_all_reserved(bench)
            by_pools = {sandbox: address for address, sandbox in (await held(bench)).items()}
            assert by_pools == {each: ip.partition("/")[0] for each, ip in runtime.living.items()}
            for sandbox in tuple(runtime.living):
                await runtime.delete(node, sandbox)
        assert await held(bench) == {}
        left = await bench.reserved()
        assert len(left) <= 1, "what one call had reserved is all that is left to repair"
        if not died:
            assert number > 8
            return  # every call has had its death
    raise AssertionError("it never came to an end of its own")
