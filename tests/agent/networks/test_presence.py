"""Who is no Node of the cluster, or has not heard of it for too long, hands out nothing new."""

import asyncio

import pytest

from agent.networks.network_bench import CLASSIC, NODE, Bench, owner
from podtide.agent.port import NotReady, OutOfContact
from podtide.cluster.port import Unavailable
from podtide.resources.node import Node
from podtide.runtime.settings import Settings


async def test_nothing_is_asked_of_the_cluster_before_the_first_call() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await asyncio.sleep(60)
        assert not node.line.calls
        await node.networks.require_ready()
        assert node.line.calls == {"list Node": 1}


async def test_a_machine_that_is_no_node_hands_out_nothing() -> None:
    bench = Bench()
    async with bench.machine(is_node=False) as node:
        with pytest.raises(OutOfContact, match="the cluster has no Node of that name"):
            await node.add("c1", CLASSIC)
        await bench.join()
        await asyncio.sleep(1)
        assert await node.add("c1", CLASSIC) == ["10.0.0.1/24"]


async def test_a_node_that_was_deleted_hands_out_nothing_new_but_takes_back() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        await bench.cluster.delete(Node, NODE)
        await asyncio.sleep(1)
        with pytest.raises(OutOfContact):
            await node.add("c2", CLASSIC)
        assert await node.delete("c1", CLASSIC) == ["10.0.0.1"]


async def test_an_agent_without_contact_hands_out_nothing_new() -> None:
    bench = Bench(Settings(contact_timeout_seconds=30.0))
    async with bench.machine() as node:
        await node.add(owner("c1"), CLASSIC)
        node.line.before["list Node"] = [Unavailable("gone")] * 1000
        node.line.watches_break = True
        bench.cluster.server.close_watches()
        await asyncio.sleep(200)
        with pytest.raises(OutOfContact, match="was silent for longer than 30s"):
            await node.add(owner("c2"), CLASSIC)


async def test_an_agent_that_cannot_reach_the_cluster_is_not_ready() -> None:
    bench = Bench()
    async with bench.machine() as node:
        node.line.before["list Node"] = [Unavailable("gone")] * 1000
        with pytest.raises(NotReady, match="has not reached the cluster yet"):
            await node.networks.require_ready()
        with pytest.raises(NotReady):
            await node.add("c1", CLASSIC)
