"""The programs that serve secondary networks: the agent of a node with a pool, and the one without."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from agent.calling import Journal, NoNotes, code
from agent.networks.network_bench import CLASSIC, NODE, Bench, NetworkLine, configuration, owner, understood
from agent.networks.node_calls import NodeCalls
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.server import make_api
from podtide.agent.program import AgentOptions, NodeAgent
from podtide.agent.secondary_program import SecondaryAgent
from podtide.cluster.port import Unavailable
from podtide.core.pool.pool import Owner
from podtide.resources.ip_pool import IPPool
from podtide.runtime.disk import Locked
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

PRIMARY = configuration({"type": "podtide"})


@asynccontextmanager
async def running(agent: NodeAgent | SecondaryAgent) -> AsyncIterator[None]:
    task = asyncio.create_task(agent.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        agent.close()


def make(
    kind: type[NodeAgent] | type[SecondaryAgent],
    bench: Bench,
    line: NetworkLine,
    disk: MemoryDisk | None = None,
    **more: Any,
) -> NodeAgent | SecondaryAgent:
    return kind(
        line,
        NODE,
        disk or MemoryDisk(),
        runtime=Runtime(
            clock=bench.clock,
            randomness=seeded_randomness(7),
            log=bench.journal.log,
            settings=bench.settings,
        ),
        **more,
    )


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (NodeAgent, {"options": AgentOptions(networks_namespace="networks")}),
        (SecondaryAgent, {"networks_namespace": "networks"}),
    ],
)
async def test_either_agent_serves_secondary_networks_in_the_namespace_it_is_told(
    kind: type[NodeAgent] | type[SecondaryAgent], told: dict[str, Any]
) -> None:
    bench = Bench()
    await bench.join()
    agent = make(kind, bench, NetworkLine(bench.cluster), **told)
    async with running(agent):
        given = await agent.networks.add(owner("c1"), understood(CLASSIC), arrived=bench.clock.monotonic())
        assert [str(each.address) for each in given] == ["10.0.0.1/24"]
        pool = await bench.cluster.get(IPPool, "10.0.0.0-24", "networks")
        assert set(pool.spec.allocations) == {"1"}


async def test_an_agent_without_a_pool_says_so_to_whoever_asks_for_it() -> None:
    bench = Bench()
    await bench.join()
    agent = make(SecondaryAgent, bench, NetworkLine(bench.cluster))
    async with running(agent):
        await agent.synced.wait()
        calls = CniCalls(agent.addresses, NoNotes(), agent.networks, clock=bench.clock, log=bench.journal.log)
        node = NodeCalls.__new__(NodeCalls)
        node.bench, node.calls = bench, calls
        refused = await node.call("ADD", PRIMARY)
        assert code(refused) == 7
        assert b"serves secondary networks alone" in refused.output
        assert (await node.call("DEL", PRIMARY)).exit_status == 0
        checked = configuration({"type": "podtide"}, prevResult={"ips": []})
        assert code(await node.call("CHECK", checked)) == 3
        gc: dict[str, Any] = {"cni.dev/valid-attachments": []}
        assert (await node.call("GC", configuration({"type": "podtide"}, **gc))).exit_status == 0
        assert (await node.call("STATUS", PRIMARY)).exit_status == 0
        with pytest.raises(ValueError, match="give the network a 'range'"):
            await agent.addresses.add(Owner("c1", "eth0"), arrived=0.0)
        assert list(agent.addresses.all_addresses()) == []


async def test_an_agent_without_a_pool_is_ready_when_it_has_reached_the_cluster() -> None:
    bench = Bench()
    await bench.join()
    line = NetworkLine(bench.cluster)
    line.before["list Node"] = [Unavailable("away")] * 3
    agent = make(SecondaryAgent, bench, line)
    api = make_api(
        agent.addresses,
        NoNotes(),
        agent.networks,
        add_wait_seconds=10.0,
        is_running=lambda: True,
        clock=bench.clock,
        log=Journal().log,
    )
    async with running(agent):
        with pytest.raises(Exception, match="has not reached the cluster yet"):
            api.addresses.require_ready()
        assert b"podtide_agent_synced 0.0" in api.metrics.render()
        await asyncio.sleep(120)
        api.addresses.require_ready()
        assert b"podtide_agent_synced 1.0" in api.metrics.render()


async def test_one_agent_at_a_time_has_the_node_with_a_pool_or_without() -> None:
    bench = Bench()
    disk = MemoryDisk()
    line = NetworkLine(bench.cluster)
    agent = make(SecondaryAgent, bench, line, disk)
    with pytest.raises(Locked):
        make(NodeAgent, bench, line, disk)
    agent.close()
    make(NodeAgent, bench, line, disk).close()


async def test_status_of_a_secondary_network_is_50_until_the_cluster_is_reached() -> None:
    bench = Bench()
    async with bench.machine() as machine:
        machine.line.before["list Node"] = [Unavailable("away")] * 1000
        node = NodeCalls(bench, machine.networks)
        assert code(await node.call("STATUS", configuration(CLASSIC))) == 50
