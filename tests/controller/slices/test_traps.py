"""The traps that the controller of Whereabouts fell into (design T14 and T18 to T22), each with a test of that name."""

from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool


async def test_ipv6_slices_crash_the_controller() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define(
            "blue", conf(ipam(range="2001:db8::/32", node_slice_size="/64", network_name="blue"))
        )
        await world.start()
        assert await world.entries("blue") == [("n1", "2001:db8::/64"), ("n2", "2001:db8:0:1::/64")]
        status = (await world.slice_pool("blue")).status
        assert status is not None
        assert (status.assigned, status.total) == (2, 2**32)
        assert (await world.pool("blue-n2")).spec.range == "2001:db8:0:1::/64"


async def test_no_free_slice_must_be_a_condition_and_an_event() -> None:
    async with a_network_world("n1", "n2", "n3", "n4", "n5", "n6") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert sorted(await world.assigned("blue")) == ["n1", "n2", "n3", "n4"]
        served = await world.condition("blue", "Served")
        assert served is not None
        assert (served.status, served.reason) == ("False", "NoSliceFree")
        assert "2 of 6 nodes wait for a slice of 10.0.0.0/22, n5 first" in served.message
        assert "of its 4 slices of /24, 4 are assigned" in served.message
        assert await world.events(NodeSlicePool, "blue") == [("NoSliceFree", served.message)]


async def test_slices_are_assigned_before_gone_nodes_are_removed_so_a_replacement_node_in_a_full_pool_waits() -> (
    None
):
    async with a_network_world("n1", "n2", "n3", "n4") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        replica = await world.start()
        await world.add_nodes("n5")
        await moment()
        assert "n5" not in await world.assigned("blue")
        await world.remove_node("n2")
        await moment(QUARANTINE - 1)
        assert "n5" not in await world.assigned("blue")
        writes = len(replica.cluster.about("NodeSlicePool"))
        await moment(5)
        assert (await world.assigned("blue"))["n5"] == "10.0.1.0/24"
        assert len(replica.cluster.about("NodeSlicePool")) == writes + 1  # freed and assigned in one
        served = await world.condition("blue", "Served")
        assert served is not None
        assert (served.status, served.reason) == ("True", "EveryNode")
        assert [reason for reason, _ in await world.events(NodeSlicePool, "blue")] == [
            "NoSliceFree",
            "EveryNode",
        ]


async def test_pools_of_removed_nodes_are_never_deleted() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        await world.remove_node("n1")
        await moment(QUARANTINE + 5)
        assert await world.names(IPPool) == ["blue-n2"]
        assert await world.assigned("blue") == {"n2": "10.0.1.0/24"}


async def test_24_and_slash_24_compare_as_different_and_re_slice_everything() -> None:
    async with a_network_world("n1", "n2") as world:
        definition = await world.define("blue", conf(ipam(network_name="blue", node_slice_size="/24")))
        replica = await world.start()
        written = len(replica.cluster.writes)
        for size in ("24", 24):
            await world.define("blue", conf(ipam(network_name="blue", node_slice_size=size)))
            await moment()
        assert len(replica.cluster.writes) == written
        assert await world.events(NetworkAttachmentDefinition, definition.metadata.name) == []


async def test_24_and_slash_24_agree_in_two_definitions_and_in_the_list() -> None:
    async with a_network_world("n1") as world:
        await world.list_slices("blue", "10.0.0.0/22", "24", ("n1", "10.0.3.0/24"))
        await world.define("one", conf(ipam(network_name="blue", node_slice_size="24")))
        await world.define("two", conf(ipam(network_name="blue", node_slice_size="/24")))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.3.0/24"}
        assert (await world.slice_pool("blue")).spec.slice_size == "24"
        assert await world.condition("blue", "Accepted") is None


async def test_a_slice_larger_than_its_range_loops_in_error() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(range="192.168.2.0/24", node_slice_size="/22")))
        replica = await world.start()
        await world.add_nodes("n2")
        await moment(3600)
        assert replica.cluster.writes == ["create Event"]
        [(reason, message)] = await world.events(NetworkAttachmentDefinition, "blue")
        assert reason == "InvalidConfig"
        assert message.startswith("slice size /22 is larger than its range 192.168.2.0/24: use /24 to /30")


async def test_two_unnamed_networks_with_different_ranges_block_each_other() -> None:
    async with a_network_world("n1") as world:
        await world.define("one", conf(ipam(range="10.0.0.0/22"), name="same"))
        await world.define("two", conf(ipam(range="10.9.0.0/22"), name="same"))
        await world.start()
        assert await world.assigned("10.0.0.0-22") == {"n1": "10.0.0.0/24"}
        assert await world.assigned("10.9.0.0-22") == {"n1": "10.9.0.0/24"}
        assert await world.names(IPPool) == ["10.0.0.0-22-n1", "10.9.0.0-22-n1"]


async def test_nad_delete_removes_by_the_wrong_name() -> None:
    async with a_network_world("n1") as world:
        await world.define("one", conf(ipam(network_name="blue"), name="conf-of-one"))
        await world.define("blue", conf(ipam(network_name="red", range="10.9.0.0/22")))
        await world.start()
        await world.undefine("blue")
        await moment()
        assert await world.names(NodeSlicePool) == ["blue"]
        assert await world.names(IPPool) == ["blue-n1"]
        await world.undefine("one")
        await moment()
        assert await world.names(NodeSlicePool) == await world.names(IPPool) == []
