"""What Whereabouts made is taken over as it is, under the names that it has."""

from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool

LISTED = (("n2", "10.0.0.0/24"), ("n1", "10.0.1.0/24"), ("", "10.0.2.0/24"), ("", "10.0.3.0/24"))


async def test_lists_and_pools_under_shipped_names_are_adopted_and_not_doubled() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", *LISTED)
        await world.add_pool("blue-n1-10.0.1.0-24", "10.0.1.0/24", 1, 2)
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.entries("blue") == list(LISTED)
        status = (await world.slice_pool("blue")).status
        assert status is not None
        assert (status.assigned, status.total) == (2, 4)
        assert await world.names(IPPool) == ["blue-n1-10.0.1.0-24", "blue-n2"]
        adopted = await world.pool("blue-n1-10.0.1.0-24")
        node = await world.cluster.get(Node, "n1")
        assert adopted.metadata.annotations == {
            NODE_ANNOTATION: "n1",
            NODE_UID_ANNOTATION: node.metadata.uid,
            NETWORK_ANNOTATION: "blue",
            POOL_UID_ANNOTATION: adopted.metadata.uid,
        }
        assert list(adopted.spec.allocations) == ["1", "2"]


async def test_a_list_under_the_configurations_name_is_adopted_by_its_range() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.list_slices("conf", "10.0.0.0/22", "/24", *LISTED)
        await world.define("unnamed", conf(ipam(), name="conf"))
        await world.define("namesake", conf(ipam(range="10.9.0.0/22"), name="conf"))
        await world.start()
        assert await world.names(NodeSlicePool) == ["10.9.0.0-22", "conf"]
        assert await world.entries("conf") == list(LISTED)
        pool = await world.pool("10.0.0.0-22-n1")
        assert (pool.spec.range, pool.metadata.annotations[NETWORK_ANNOTATION]) == ("10.0.1.0/24", "conf")


async def test_an_adopted_network_is_collected_like_any_other() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.list_slices("conf", "10.0.0.0/22", "/24", *LISTED)
        await world.add_pool("n1-10.0.1.0-24", "10.0.1.0/24")
        await world.define("unnamed", conf(ipam(), name="conf"))
        replica = await world.start()
        await replica.stop()
        await world.undefine("unnamed")
        await world.start()
        assert await world.names(NodeSlicePool) == await world.names(IPPool) == []


async def test_the_pool_of_a_node_that_was_gone_before_rests_too() -> None:
    async with a_network_world("n2") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", *LISTED)
        await world.add_pool("blue-n1-10.0.1.0-24", "10.0.1.0/24")
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        marks = (await world.pool("blue-n1-10.0.1.0-24")).metadata.annotations
        assert marks[NODE_ANNOTATION] == "n1"
        assert NODE_GONE_ANNOTATION in marks
        await moment(QUARANTINE)
        assert await world.assigned("blue") == {"n2": "10.0.0.0/24"}
        assert await world.names(IPPool) == ["blue-n2"]


async def test_of_two_nodes_that_one_slice_was_given_to_the_one_that_uses_it_keeps_it() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("n1", "10.0.0.0/24"), ("n2", "10.0.0.0/24"))
        await world.add_pool("blue-n2-10.0.0.0-24", "10.0.0.0/24", 7)
        await world.reserve("blue-10.0.0.7")
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.assigned("blue") == {"n2": "10.0.0.0/24", "n1": "10.0.1.0/24"}
        assert await world.find_reservation("blue-10.0.0.7")


async def test_a_list_that_no_definition_wants_and_that_cannot_be_read_goes_when_it_is_empty() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "/8")
        await world.start()
        assert await world.find(NodeSlicePool, "blue", SYSTEM_NAMESPACE) is None
