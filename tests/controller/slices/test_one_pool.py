"""A slice has one pool, under one of two names, whatever the copies of a controller show of it, and when."""

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.cluster.port import Conflict
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_UID_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool, NodeSlicePoolStatus

BLUE = conf(ipam(network_name="blue"))


def freed(pool: NodeSlicePool) -> NodeSlicePool:
    """The list with no slice given to anybody."""
    return structs.replace(pool, status=NodeSlicePoolStatus(allocations=[]))


async def test_a_pool_that_is_seen_only_while_the_list_is_written_is_not_made_again_under_its_other_name() -> (
    None
):
    async with a_network_world("n1") as world:
        replica = await world.start(Script(replace=[5.0]))
        replica.cluster.turn_deaf(IPPool)
        await world.define("blue", BLUE)
        await moment()
        await world.add_nodes("n2")
        await moment()  # the list is on its way, and as far as anybody knew n1 had no pool
        replica.cluster.hear()
        await moment(10)
        assert await world.names(IPPool) == ["blue-n1", "blue-n2"]


async def test_a_pool_that_a_list_leaves_out_is_not_made_again_under_its_other_name() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("n1", "10.0.1.0/24"))
        await world.add_pool("blue-n1-10.0.1.0-24", "10.0.1.0/24", 7)
        await world.define("blue", BLUE)
        replica = await world.start_blind_to("blue-n1-10.0.1.0-24")
        assert await world.names(IPPool) == ["blue-n1-10.0.1.0-24"]

        replica.cluster.hidden.clear()
        await world.reserve("blue-10.0.1.7")
        world.cluster.server.expire_history()
        world.cluster.server.close_watches()
        await moment(60)
        assert await world.names(IPPool) == ["blue-n1-10.0.1.0-24"]
        node = await world.cluster.get(Node, "n1")
        adopted = await world.pool("blue-n1-10.0.1.0-24")
        assert adopted.metadata.annotations[NODE_UID_ANNOTATION] == node.metadata.uid


async def test_a_name_is_free_that_only_the_copies_still_show_to_be_anothers() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool("blue-n1", "192.168.0.0/24")
        replica = await world.start()
        replica.cluster.turn_deaf(IPPool)
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await world.define("blue", BLUE)
        await moment()
        assert (await world.pool("blue-n1")).spec.range == "10.0.0.0/24"


async def test_a_slice_that_has_two_pools_all_the_same_is_freed_when_both_are_gone() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.add_pool("blue-n1-10.0.0.0-24", "10.0.0.0/24", 7)  # Whereabouts still runs on that node
        await world.remove_node("n1")
        await moment(10 * QUARANTINE)
        assert await world.names(IPPool) == ["blue-n1-10.0.0.0-24"]
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}

        await world.hold("blue-n1-10.0.0.0-24")
        await moment()
        assert await world.names(IPPool) == []
        assert await world.assigned("blue") == {}


async def test_the_lease_of_a_nodes_other_pool_of_that_name_stays() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("n1", "10.0.0.0/24"), ("n1", "10.0.1.0/24"))
        await world.add_pool("blue-n1", "10.0.1.0/24", 7)
        await world.lease_of_pool("blue-n1", "n1")
        await world.define("blue", BLUE)
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.1.0/24"}
        assert await world.names(Lease) == ["blue-n1"]


async def test_a_write_that_frees_a_slice_comes_too_late_when_its_pool_has_been_made_again() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        late = freed(await world.slice_pool("blue"))  # the definition was away, and the pool went first
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await world.start()
        assert await world.names(IPPool) == ["blue-n1"]
        with pytest.raises(Conflict):
            await world.cluster.replace(late, manager="an earlier term")
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_no_pool_is_confirmed_for_an_entry_that_only_the_copy_still_shows() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        replica.cluster.turn_deaf(NodeSlicePool)
        await world.cluster.replace(freed(await world.slice_pool("blue")), manager="an earlier term")
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await moment()
        assert is_inert(await world.pool("blue-n1"))

        replica.cluster.hear()
        await moment(60)
        assert is_confirmed(await world.pool("blue-n1"))
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_a_pool_that_can_have_neither_name_is_complained_of_and_nothing_is_written_for_it() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("n1", "10.0.0.0/24"))
        await world.add_pool("blue-n1", "192.168.0.0/24", 7)
        await world.add_pool("blue-n1-10.0.0.0-24", "192.168.1.0/24", 7)
        await world.define("blue", BLUE)
        replica = await world.start()
        replica.cluster.writes.clear()
        await world.add_nodes("n2")
        await moment(60)
        assert replica.cluster.writes == [  # those of n2
            "create IPPool",
            "replace NodeSlicePool",
            "replace IPPool",
        ]
        assert "the IPPools blue-n1 and blue-n1-10.0.0.0-24 belong to others" in world.lines.getvalue()
