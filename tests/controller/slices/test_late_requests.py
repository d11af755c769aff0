"""Requests to make a pool that arrive late, or twice: what they make counts for nothing, and goes."""

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.slices.network_world import NetworkWorld, a_network_world, conf, ipam, moment
from podtide.controller.options import NetworkOptions
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.names import Naming
from podtide.resources.node import Node

BLUE = conf(ipam(network_name="blue"))


async def arrives(
    world: NetworkWorld, name: str, slice_: str, node: str, node_uid: str = "of long ago", **marks: str
) -> IPPool:
    """A request to make a pool for a node arrives, as a controller sent it."""
    annotations = {NODE_ANNOTATION: node, NODE_UID_ANNOTATION: node_uid, NETWORK_ANNOTATION: "blue"}
    pool = IPPool(
        metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, annotations=annotations | marks),
        spec=IPPoolSpec(range=slice_, allocations={}),
    )
    return await world.cluster.create(pool, manager="podtide-controller")


async def test_a_pool_whose_network_is_gone_is_inert_and_goes() -> None:
    async with a_network_world("n1") as world:
        node = await world.cluster.get(Node, "n1")
        await world.start()
        made = await arrives(world, "blue-n1", "10.0.0.0/24", "n1", node.metadata.uid)
        assert is_inert(made)
        await moment()
        assert await world.names(IPPool) == []


async def test_a_pool_of_a_slice_that_another_node_has_by_now_is_inert_and_goes() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        before = await world.pool("blue-n1")
        assert is_inert(await arrives(world, "blue-n0", "10.0.0.0/24", "n0"))
        await moment()
        assert await world.names(IPPool) == ["blue-n1"]
        assert await world.pool("blue-n1") == before
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_a_pool_of_a_node_that_has_another_slice_by_now_makes_way_for_the_right_one() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        node = await world.cluster.get(Node, "n1")
        await arrives(world, "blue-n1", "10.0.3.0/24", "n1", node.metadata.uid)
        await world.start()
        pool = await world.pool("blue-n1")
        assert pool.spec.range == "10.0.0.0/24"
        assert is_confirmed(pool)
        assert await world.names(IPPool) == ["blue-n1"]


async def test_a_pool_that_is_heard_of_only_when_it_stands_in_the_way_makes_way_too() -> None:
    async with a_network_world() as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        replica.cluster.turn_deaf(IPPool)
        await arrives(world, "blue-n1", "10.0.3.0/24", "n1")
        await world.add_nodes("n1")
        await moment()
        assert is_inert(await world.pool("blue-n1"))
        assert await world.names(IPPool) == ["blue-n1"], "no second one, under the other name"
        replica.cluster.hear()
        await moment(60)
        assert (await world.pool("blue-n1")).spec.range == "10.0.0.0/24"


async def test_a_second_pool_of_a_slice_under_its_other_name_goes() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await arrives(world, "blue-n1-10.0.0.0-24", "10.0.0.0/24", "n1")
        await moment()
        assert await world.names(IPPool) == ["blue-n1"]


async def test_a_pool_of_a_slice_that_is_listed_is_confirmed_for_the_node_that_is_there() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        before = await world.slice_pool("blue")
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await arrives(world, "blue-n1", "10.0.0.0/24", "n1")
        await world.start()
        pool, node = await world.pool("blue-n1"), await world.cluster.get(Node, "n1")
        assert is_confirmed(pool)
        assert pool.metadata.annotations[NODE_UID_ANNOTATION] == node.metadata.uid
        after = await world.slice_pool("blue")
        assert after.metadata.resource_version != before.metadata.resource_version, "what frees it comes late"


async def test_no_request_to_make_a_pool_can_have_it_confirmed() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        before = await world.pool("blue-n1")
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        marks = {POOL_UID_ANNOTATION: before.metadata.uid}
        assert is_inert(await arrives(world, "blue-n1", "10.0.0.0/24", "n1", **marks))


async def test_a_pool_that_goes_while_its_slice_is_listed_is_not_confirmed_but_made_anew() -> None:
    async with a_network_world() as world:
        await world.define("blue", BLUE)
        await world.start(Script(replace=[5.0]))
        await world.add_nodes("n1")
        await moment()
        first = await world.pool("blue-n1")
        assert is_inert(first)
        assert await world.assigned("blue") == {}, "the list is on its way"
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await moment(60)
        second = await world.pool("blue-n1")
        assert second.metadata.uid != first.metadata.uid
        assert is_confirmed(second)


@pytest.mark.parametrize("naming", Naming)
async def test_a_pool_that_an_earlier_version_made_is_confirmed_whether_it_is_used_or_not(
    naming: Naming,
) -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        replica = await world.start(options=NetworkOptions(naming=naming))
        await replica.stop()
        used = (await world.names(IPPool))[0]
        await world.hold(used, 7)
        for name in await world.names(IPPool):
            pool = await world.pool(name)
            marks = {
                key: text for key, text in pool.metadata.annotations.items() if key != POOL_UID_ANNOTATION
            }
            metadata = structs.replace(pool.metadata, annotations=marks)
            await world.cluster.replace(structs.replace(pool, metadata=metadata), manager="test")
        await world.start(options=NetworkOptions(naming=naming))
        pools = [await world.pool(name) for name in await world.names(IPPool)]
        assert [is_confirmed(pool) for pool in pools] == [True, True]
        assert list((await world.pool(used)).spec.allocations) == ["7"]
