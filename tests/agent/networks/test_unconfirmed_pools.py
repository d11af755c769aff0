"""Nothing is given of a pool that the slices controller has not confirmed: it may be nobody's any more."""

import asyncio

import pytest
from msgspec import structs

from agent.networks.network_bench import NODE, SLICED, Bench
from podtide.agent.networks.errors import NoSlice
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import (
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)

POOL = "blue-node-a"


async def list_slice(bench: Bench, slice_: str) -> None:
    await bench.cluster.create(
        NodeSlicePool(
            metadata=ObjectMeta(name="blue", namespace=SYSTEM_NAMESPACE),
            spec=NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24"),
            status=NodeSlicePoolStatus(allocations=[NodeSliceAllocation(node_name=NODE, slice_range=slice_)]),
        ),
        manager="podtide-controller",
    )


async def made_again(bench: Bench, pool: IPPool) -> IPPool:
    """The request that made the pool arrives once more, when the pool is gone."""
    marks = {
        key: text
        for key, text in pool.metadata.annotations.items()
        if key in {NODE_ANNOTATION, NODE_UID_ANNOTATION}
    }
    place = ObjectMeta(name=pool.metadata.name, namespace=SYSTEM_NAMESPACE, annotations=marks)
    return await bench.cluster.create(structs.replace(pool, metadata=place), manager="podtide-controller")


async def test_nothing_is_given_of_a_pool_that_a_late_request_made_and_then_it_is_confirmed() -> None:
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
    await list_slice(bench, "10.0.3.0/24")
    late = await made_again(bench, pool)
    async with bench.machine() as node:
        with pytest.raises(NoSlice, match="IPPool blue-node-a is not ready yet: try again"):
            await node.add("c1", SLICED)
        assert await bench.pool(POOL) == {}
        assert await node.delete("c1", SLICED) == []
        await bench.confirm(late)
        await asyncio.sleep(3)
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]


async def test_an_agent_that_used_a_pool_gives_nothing_of_the_one_that_a_late_request_made_in_its_place() -> (
    None
):
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    async with bench.machine() as node:
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
        await node.delete("c1", SLICED)
        await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
        await made_again(bench, pool)
        with pytest.raises(NoSlice):
            await node.add("c2", SLICED)
        assert await bench.pool(POOL) == {}


async def test_the_uid_of_an_earlier_pool_confirms_nothing() -> None:
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.3.0/24")
    await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
    late = await made_again(bench, pool)
    marks = late.metadata.annotations | {POOL_UID_ANNOTATION: pool.metadata.uid}
    metadata = structs.replace(late.metadata, annotations=marks)
    await bench.cluster.replace(structs.replace(late, metadata=metadata), manager="test")
    async with bench.machine() as node:
        with pytest.raises(NoSlice):
            await node.add("c1", SLICED)


async def test_the_pool_under_whereabouts_name_is_used_while_one_under_podtides_is_inert() -> None:
    bench = Bench()
    pool = await bench.cut(SLICED, "10.0.5.0/24")
    await bench.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
    await made_again(bench, pool)
    await list_slice(bench, "10.0.3.0/24")
    await bench.cut(SLICED, "10.0.3.0/24", name="blue-node-a-10.0.3.0-24")
    async with bench.machine() as node:
        assert await node.add("c1", SLICED) == ["10.0.3.1/16"]
    assert await bench.pool(POOL) == {}
