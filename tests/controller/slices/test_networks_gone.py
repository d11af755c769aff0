"""A network goes with its last definition: its pools as they become empty, its list when the last of them is gone."""

from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.base import OwnerReference
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

BLUE = conf(ipam(network_name="blue"))


async def test_addresses_of_live_pods_stay_until_their_del() -> None:
    async with a_network_world("n1", "n2", "n3") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.hold("blue-n2", 5)
        await world.lease_of_pool("blue-n2", "n2")
        await world.reserve("blue-10.0.1.5")
        await world.undefine("blue")
        await moment(600)
        assert await world.names(IPPool) == ["blue-n2"]
        assert await world.assigned("blue") == {"n2": "10.0.1.0/24"}
        assert await world.names(OverlappingRangeIPReservation) == ["blue-10.0.1.5"]
        await world.hold("blue-n2")
        await moment()
        for kind in (IPPool, NodeSlicePool, Lease, OverlappingRangeIPReservation):
            assert await world.names(kind) == []


async def test_it_is_noticed_also_where_the_last_definition_went_while_no_controller_ran() -> None:
    async with a_network_world("n1") as world:
        ranges = [
            {"range": "10.0.0.0/16", "node_slice_size": "/24"},
            {"range": "fd00::/48", "node_slice_size": "/64"},
        ]
        await world.define(
            "blue", conf(ipam(range=None, node_slice_size=None, network_name="blue", ipRanges=ranges))
        )
        await world.define("unnamed", conf(ipam(range="10.9.0.0/22")))
        replica = await world.start()
        await replica.stop()
        await world.undefine("blue")
        await world.undefine("unnamed")
        await world.start()
        assert await world.names(IPPool) == await world.names(NodeSlicePool) == []


async def test_a_network_that_is_defined_again_finds_the_slices_that_were_in_use() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.hold("blue-n2", 5)
        await world.undefine("blue")
        await moment()
        await world.define("blue", BLUE)
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        assert list((await world.pool("blue-n2")).spec.allocations) == ["5"]


async def test_the_slice_of_a_node_that_is_gone_rests_also_when_its_network_goes() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment()
        await world.undefine("blue")
        await moment(QUARANTINE - 10)
        assert await world.names(IPPool) == ["blue-n1"]
        await moment(10)
        assert await world.names(IPPool) == await world.names(NodeSlicePool) == []


async def test_a_range_that_is_dropped_from_a_network_goes_and_the_others_stay() -> None:
    async with a_network_world("n1") as world:
        both = [
            {"range": "10.0.0.0/16", "node_slice_size": "/24"},
            {"range": "fd00::/48", "node_slice_size": "/64"},
        ]
        await world.define(
            "blue", conf(ipam(range=None, node_slice_size=None, network_name="blue", ipRanges=both))
        )
        await world.start()
        await world.hold("blue-fd00---48-n1", 5)
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/16")))
        await moment()
        assert await world.names(IPPool) == ["blue-fd00---48-n1", "blue-n1"]
        await world.hold("blue-fd00---48-n1")
        await moment()
        assert await world.names(IPPool) == ["blue-n1"]
        assert await world.names(NodeSlicePool) == ["blue"]


async def test_a_list_that_somebody_deletes_is_put_together_again_from_the_pools() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.remove_node("n1")
        await moment()
        await world.cluster.delete(NodeSlicePool, "blue", SYSTEM_NAMESPACE)
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}


async def test_pools_are_collected_also_where_their_list_is_gone() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await world.hold("blue-n2", 5)
        await replica.stop()
        await world.undefine("blue")
        await world.cluster.delete(NodeSlicePool, "blue", SYSTEM_NAMESPACE)
        await world.start()
        assert await world.names(IPPool) == ["blue-n2"]
        await world.hold("blue-n2")
        await moment()
        assert await world.names(IPPool) == []


async def test_a_pool_that_somebody_deletes_is_made_again() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.start()
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await moment()
        assert (await world.pool("blue-n1")).spec.range == "10.0.0.0/24"


async def test_the_pool_of_a_classic_network_goes_when_it_is_empty_and_its_last_definition_gone() -> None:
    async with a_network_world("n1") as world:
        for name in ("one", "two"):
            await world.define(name, conf(ipam(network_name="blue", node_slice_size=None)))
        await world.start()
        await world.add_pool("blue-10.0.0.0-22", "10.0.0.0/22", 5)
        await world.undefine("one")
        await world.hold("blue-10.0.0.0-22")
        await moment()
        assert await world.names(IPPool) == ["blue-10.0.0.0-22"]
        await world.hold("blue-10.0.0.0-22", 6)
        await world.undefine("two")
        await moment()
        assert await world.names(IPPool) == ["blue-10.0.0.0-22"]
        await world.hold("blue-10.0.0.0-22")
        await moment()
        assert await world.names(IPPool) == []


async def test_a_classic_network_that_becomes_sliced_gets_slices_when_its_shared_pool_is_empty() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue", node_slice_size=None)))
        await world.start()
        await world.add_pool("blue-10.0.0.0-22", "10.0.0.0/22", 5)
        await world.define("blue", BLUE)
        await moment()
        assert await world.assigned("blue") == {}
        await world.hold("blue-10.0.0.0-22")
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        assert await world.names(IPPool) == ["blue-n1"]


async def test_the_garbage_collector_does_not_take_the_list_with_the_first_of_its_owners() -> None:
    async with a_network_world("n1") as world:
        definition = await world.define("nad", BLUE, SYSTEM_NAMESPACE)
        await world.define("other", BLUE)
        owner = OwnerReference(
            api_version=NetworkAttachmentDefinition.api.api_version,
            kind=NetworkAttachmentDefinition.api.kind,
            name="nad",
            uid=definition.metadata.uid,
        )
        await world.list_slices("blue", "10.0.0.0/22", "/24", ("n1", "10.0.2.0/24"), owner_references=[owner])
        await world.start()
        await world.undefine("nad", SYSTEM_NAMESPACE)
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.2.0/24"}
