"""GC frees what an earlier agent gave, where the node's own pool says by which configuration; elsewhere repair does.

A list of attachments is one configuration's, and says nothing of another that has a part in the same pool, nor of other
nodes. So whatever is not certainly this node's and that configuration's stays.
"""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from agent.networks.network_bench import CLASSIC, SLICED, Bench, configuration, owner, understood
from agent.networks.node_calls import calling
from podtide.agent.api.plugin_protocol import Answer
from podtide.agent.port import NotReady, OutOfContact
from podtide.cluster.port import Unavailable
from podtide.resources.ip_pool import IPAllocation, IPPool
from podtide.resources.metadata_keys import NODE_UID_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node

POOL = "blue-node-a"
NOBODY: frozenset[tuple[str, str]] = frozenset()
DUAL = SLICED | {"ipRanges": [{"range": "fd00:1::/48", "node_slice_size": "/64"}]}


async def given(bench: Bench, *sandboxes: str, network: str = "mynet") -> None:
    """An agent gives addresses, and is killed."""
    async with bench.machine() as node:
        for sandbox in sandboxes:
            await node.add(owner(sandbox, network=network), SLICED, network)


async def a_bench(*sandboxes: str) -> Bench:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    await given(bench, *sandboxes)
    return bench


async def holders(bench: Bench) -> set[str]:
    return {entry.id for entry in (await bench.pool(POOL)).values()}


async def test_what_an_earlier_agent_gave_is_freed_at_once_with_its_reservations() -> None:
    bench = await a_bench("dead-1", "alive", "dead-2")
    async with bench.machine() as node:
        freed = await node.networks.collect_garbage(understood(SLICED), frozenset({("alive", "net1")}))
        assert freed == 2
        assert await holders(bench) == {"alive"}
        assert await bench.reserved() == {"blue-10.0.3.2": "default/pod-of-alive"}
        assert await node.add("new", SLICED) == ["10.0.3.1/16"]


async def test_it_costs_two_reads_and_one_write_of_the_pool_however_much_is_freed() -> None:
    bench = await a_bench(*(f"c{number}" for number in range(20)))
    async with bench.machine() as node:
        await node.networks.require_ready()
        node.line.forget()
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 20
        assert node.line.calls["get IPPool"] == 2, "once to see what is there, and once to write it"
        assert node.line.calls["replace IPPool"] == 1
        node.line.forget()
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 0
        assert not node.line.calls


async def test_the_plugins_call_does_it_for_every_range() -> None:
    bench = Bench()
    await bench.cut(DUAL, "10.0.3.0/24")
    await bench.cut(DUAL, "fd00:1:0:7::/64", place=1)
    async with calling(bench) as node:
        for sandbox in ("dead", "alive"):
            await node.add(DUAL, sandbox)
    alive: dict[str, Any] = {"cni.dev/valid-attachments": [{"containerID": "alive", "ifname": "net1"}]}
    async with calling(bench) as node:
        assert await node.call("GC", configuration(DUAL, **alive)) == Answer(0)
    assert set(await bench.reserved()) == {"blue-10.0.3.2", "blue-fd00-1-0-7--2"}


async def test_another_configuration_that_shares_the_pool_is_not_touched() -> None:
    bench = await a_bench("of-mynet")
    await given(bench, "of-other", network="other")
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 1
        assert await holders(bench) == {"of-other"}


async def test_an_address_that_sandboxes_of_two_configurations_had_is_left_to_repair() -> None:
    bench = await a_bench()
    async with bench.machine() as node:
        await node.add(owner("first", "web"), SLICED)
        await node.add(owner("second", "web", network="other"), SLICED, "other")
    async with bench.machine() as node:
        for name in ("mynet", "other"):
            assert await node.networks.collect_garbage(understood(SLICED, name), NOBODY) == 0
        assert await holders(bench) == {"second"}


async def test_a_dead_sandbox_of_a_pod_that_has_another_leaves_it_the_address() -> None:
    bench = await a_bench()
    async with bench.machine() as node:
        await node.add(owner("dead", "web"), SLICED)
        await node.add(owner("alive", "web"), SLICED)
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(SLICED), frozenset({("alive", "net1")})) == 1
        assert [(each.id, each.earlier) for each in (await bench.pool(POOL)).values()] == [("alive", [])]
        assert set(await bench.reserved()) == {"blue-10.0.3.1"}


@pytest.mark.parametrize(
    "entry",
    [
        IPAllocation(id="w1", podref="default/w1", ifname="net1"),
        IPAllocation(id="", podref="default/w1", ifname=""),
        IPAllocation(id="w1", podref="default/w1", ifname="net1", pod_uid="uid-1"),
    ],
    ids=["of Whereabouts", "without sandbox and interface", "that says no configuration"],
)
async def test_an_entry_that_does_not_say_whose_it_is_is_left_to_repair(entry: IPAllocation) -> None:
    bench = await a_bench()
    await bench.edit(POOL, lambda entries: entries.update({"9": entry}))
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 0
        assert await bench.pool(POOL) == {"9": entry}


@pytest.mark.parametrize("annotations", [{NODE_UID_ANNOTATION: "another"}, {}], ids=["another's", "nobody's"])
async def test_a_pool_that_is_not_certainly_this_very_nodes_is_left_to_repair(
    annotations: dict[str, str],
) -> None:
    """The entries may be of another machine of that name, which still runs."""
    bench = await a_bench("c1")
    pool = await bench.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
    place = structs.replace(pool.metadata, annotations=annotations)
    await bench.cluster.replace(structs.replace(pool, metadata=place), manager="kubectl")
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 0
        assert await holders(bench) == {"c1"}


async def test_what_is_in_a_pool_that_all_nodes_share_is_left_to_repair() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(CLASSIC), NOBODY) == 0
        assert not node.line.calls, "nothing is even asked"
    assert [entry.configuration for entry in (await bench.pool("10.0.0.0-24")).values()] == [""]


async def test_an_add_under_way_is_no_garbage() -> None:
    bench = await a_bench("dead")
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        node.line.before["replace IPPool"] = [1.0]
        adding = asyncio.create_task(node.add("c2", SLICED))
        await asyncio.sleep(0.5)
        alive = frozenset({("c1", "net1")})
        assert await node.networks.collect_garbage(understood(SLICED), alive) == 1
        assert await adding == ["10.0.3.3/16"]
        assert await holders(bench) == {"c1", "c2"}


async def test_an_add_that_has_one_of_its_two_addresses_is_no_garbage() -> None:
    bench = Bench()
    await bench.cut(DUAL, "10.0.3.0/24")
    await bench.cut(DUAL, "fd00:1:0:7::/64", place=1)
    async with bench.machine() as node:
        node.line.before["replace IPPool"] = [None, 1.0]
        adding = asyncio.create_task(node.add("c1", DUAL))
        await asyncio.sleep(0.5)
        assert len(await bench.reserved()) == 2
        assert await node.networks.collect_garbage(understood(DUAL), NOBODY) == 0
        assert await adding == ["10.0.3.1/16", "fd00:1:0:7::1/48"]


async def test_an_add_that_comes_and_is_done_while_garbage_is_looked_up_is_none() -> None:
    bench = await a_bench("dead")
    async with bench.machine() as node:
        await node.networks.require_ready()
        node.line.before["get IPPool"] = [1.0]
        collecting = asyncio.create_task(node.networks.collect_garbage(understood(SLICED), NOBODY))
        await asyncio.sleep(0.5)
        assert await node.add("new", SLICED) == ["10.0.3.2/16"]
        assert await collecting == 1
        assert await holders(bench) == {"new"}


async def test_a_node_without_a_slice_has_no_garbage() -> None:
    bench = Bench()
    async with bench.machine() as node:
        assert await node.networks.collect_garbage(understood(SLICED), NOBODY) == 0


async def test_until_the_cluster_is_reached_nobody_is_told_that_all_is_clean() -> None:
    bench = await a_bench("c1")
    async with bench.machine() as node:
        node.line.before["list Node"] = [Unavailable("no way there")] * 10_000
        with pytest.raises(NotReady):
            await node.networks.collect_garbage(understood(SLICED), NOBODY)
    assert await holders(bench) == {"c1"}


async def test_a_machine_whose_node_is_gone_frees_nothing_by_what_is_written() -> None:
    bench = await a_bench("c1")
    await bench.cluster.delete(Node, "node-a")
    async with bench.machine(is_node=False) as node:
        with pytest.raises(OutOfContact):
            await node.networks.collect_garbage(understood(SLICED), NOBODY)
    assert await holders(bench) == {"c1"}
