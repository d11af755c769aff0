"""Pods that come back under their name keep working, and get nothing that another may still have."""

import pytest

from agent.networks.network_bench import CLASSIC, SLICED, Bench, owner
from podtide.cni.errors import InvalidEnvironment
from podtide.core.pool.pool import Owner
from podtide.resources.ip_pool import IPAllocation

POOL = "10.0.0.0-24"


async def test_a_new_sandbox_of_the_same_pod_has_the_address_it_had() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid="u1"), CLASSIC)
    async with bench.machine() as node:
        assert await node.add(owner("c2", "web", uid="u1"), CLASSIC) == ["10.0.0.1/24"]
        assert (await bench.pool(POOL))["1"].id == "c2"


async def test_a_statefulsets_pod_that_moved_takes_nothing_from_the_node_that_may_live() -> None:
    bench = Bench()
    async with bench.machine("node-a") as lost, bench.machine("node-b") as other:
        assert await lost.add(owner("c1", "db-0", uid="u1"), CLASSIC) == ["10.0.0.1/24"]
        assert await other.add(owner("c2", "db-0", uid="u2"), CLASSIC) == ["10.0.0.2/24"]
        assert await lost.delete(owner("c1", "db-0", uid="u1"), CLASSIC) == ["10.0.0.1"]
        assert [entry.id for entry in (await bench.pool(POOL)).values()] == ["c2"]


async def test_a_pod_made_anew_on_the_same_node_while_the_old_one_ends_has_another_address() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        assert await node.add(owner("c1", "db-0", uid="u1"), SLICED) == ["10.0.3.1/16"]
        assert await node.add(owner("c2", "db-0", uid="u2"), SLICED) == ["10.0.3.2/16"]


async def test_an_allocation_by_whereabouts_in_this_nodes_pool_is_the_replaced_sandboxs() -> None:
    bench = Bench()
    await bench.cut(SLICED, "10.0.3.0/24")
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1")
    await bench.edit("blue-node-a", lambda entries: entries.update({"7": entry}))
    async with bench.machine() as node:
        assert await node.add(owner("c2", "web", uid="u1"), SLICED) == ["10.0.3.7/16"]


async def test_an_allocation_by_whereabouts_in_a_shared_pool_may_be_another_nodes() -> None:
    bench = Bench()
    entry = IPAllocation(id="c1", podref="default/web", ifname="net1")
    await bench.put_pool(POOL, "10.0.0.0/24", _7=entry)
    async with bench.machine() as node:
        assert await node.add(owner("c2", "web", uid="u1"), CLASSIC) == ["10.0.0.1/24"]
        assert (await bench.pool(POOL))["7"] == entry


async def test_a_runtime_that_tells_no_uid_has_its_replaced_sandbox_known_by_our_records() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid=""), CLASSIC)
        assert await node.add(owner("c2", "web", uid=""), CLASSIC) == ["10.0.0.1/24"]


async def test_a_sandbox_without_a_pod_is_refused_as_nobody_could_tell_whose_its_address_is() -> None:
    bench = Bench()
    async with bench.machine() as node:
        with pytest.raises(InvalidEnvironment, match="lacks K8S_POD_NAMESPACE or K8S_POD_NAME"):
            await node.add(Owner("c1", "net1", network="mynet"), CLASSIC)
