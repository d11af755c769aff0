"""A network's range or slice size is changed while nodes have slices of it."""

from cluster.faulty_cluster import Script
from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool


def blue(**keys: object) -> str:
    return conf(ipam(network_name="blue", **keys))


async def test_a_range_that_grew_keeps_all_assignments() -> None:
    async with a_network_world("n1", "n2", "n3", "n4", "n5") as world:
        await world.define("blue", blue(range="10.0.4.0/22"))
        replica = await world.start()
        await world.hold("blue-n2", 5)
        before = await world.assigned("blue")
        written = len(replica.cluster.writes)
        await world.define("blue", blue(range="10.0.0.0/16"))
        await moment()
        after = await world.assigned("blue")
        assert {node: after[node] for node in before} == before
        assert after["n5"] == "10.0.0.0/24"
        assert (await world.slice_pool("blue")).spec.range == "10.0.0.0/16"
        assert replica.cluster.writes[written:] == [
            "create IPPool",
            "replace NodeSlicePool",
            "create Event",
            "replace IPPool",
        ]


async def test_a_change_that_would_move_a_slice_with_live_addresses_is_refused_with_a_reason() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", blue())
        await world.start()
        await world.hold("blue-n2", 5)
        await world.define("blue", blue(node_slice_size="/26"))
        await moment()
        assert (await world.slice_pool("blue")).spec.slice_size == "/24"
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        accepted = await world.condition("blue", "Accepted")
        assert accepted is not None
        assert (accepted.status, accepted.reason) == ("False", "WouldMoveLiveSlices")
        assert "it has no slice 10.0.1.0/24, where node n2 has addresses in use" in accepted.message
        assert await world.events(NodeSlicePool, "blue") == [("WouldMoveLiveSlices", accepted.message)]


async def test_while_a_change_is_refused_nodes_that_come_are_served_as_before() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", blue())
        replica = await world.start()
        await world.hold("blue-n1", 5)
        await world.define("blue", blue(node_slice_size="/26"))
        await moment()
        await world.add_nodes("n2")
        await moment()
        assert (await world.pool("blue-n2")).spec.range == "10.0.1.0/24"
        written = len(replica.cluster.writes)
        await moment(600)
        assert len(replica.cluster.writes) == written


async def test_a_refused_change_is_carried_out_when_the_last_address_is_released() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", blue())
        await world.start()
        await world.hold("blue-n2", 5)
        await world.define("blue", blue(node_slice_size="/26"))
        await moment()
        await world.hold("blue-n2")
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/26", "n2": "10.0.0.64/26"}
        assert (await world.pool("blue-n1")).spec.range == "10.0.0.0/26"
        assert (await world.pool("blue-n2")).spec.range == "10.0.0.64/26"
        accepted = await world.condition("blue", "Accepted")
        assert accepted is not None
        assert (accepted.status, accepted.reason) == ("True", "AsStated")


async def test_an_address_that_is_released_while_its_network_is_looked_at_is_not_overlooked() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", blue())
        faults = Script()
        await world.start(faults)
        await world.hold("blue-n1", 5)
        await world.define("blue", blue(node_slice_size="/26"))
        faults.steps["replace"] = [10.0]  # the refusal is being written
        await moment(5)
        await world.hold("blue-n1")
        await moment(20)
        assert await world.assigned("blue") == {"n1": "10.0.0.0/26"}


async def test_a_change_that_moves_only_empty_slices_is_carried_out_at_once() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", blue())
        await world.start()
        await world.define("blue", blue(range="10.9.0.0/22"))
        await moment()
        assert await world.assigned("blue") == {"n1": "10.9.0.0/24", "n2": "10.9.1.0/24"}
        ranges = {pool.metadata.name: pool.spec.range for pool in (await world.cluster.list(IPPool)).items}
        assert ranges == {"blue-n1": "10.9.0.0/24", "blue-n2": "10.9.1.0/24"}


async def test_a_slice_in_quarantine_is_not_moved_either() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", blue())
        await world.start()
        await world.remove_node("n2")
        await moment()
        await world.define("blue", blue(range="10.9.0.0/22"))
        await moment()
        assert (await world.slice_pool("blue")).spec.range == "10.0.0.0/22"
        await moment(QUARANTINE)
        assert await world.assigned("blue") == {"n1": "10.9.0.0/24"}


async def test_an_unnamed_network_whose_range_grew_is_another_that_spares_what_is_in_use() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(range="10.0.0.0/24", node_slice_size="/26")))
        await world.start()
        await world.hold("10.0.0.0-24-n1", 5)
        await world.define("blue", conf(ipam(range="10.0.0.0/22", node_slice_size="/26")))
        await moment()
        assert await world.assigned("10.0.0.0-22") == {"n1": "10.0.0.64/26"}
        assert await world.names(IPPool) == ["10.0.0.0-22-n1", "10.0.0.0-24-n1"]
        await world.hold("10.0.0.0-24-n1")
        await moment()
        assert await world.names(IPPool) == ["10.0.0.0-22-n1"]


async def test_a_shared_pool_of_another_network_keeps_no_slices_of_the_same_addresses_back() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool("blue-10.0.0.0-22", "10.0.0.0/22", 5)
        await world.define("old", conf(ipam(network_name="blue", node_slice_size=None)))
        await world.define("new", conf(ipam(network_name="blue-new", range="10.0.0.0/22")))
        await world.start()
        assert await world.assigned("blue-new") == {"n1": "10.0.0.0/24"}  # another network, other addresses


async def test_slices_freed_by_hand_go_to_who_waits() -> None:
    async with a_network_world("n1", "n2") as world:
        foreign = await world.add_pool("elsewhere-10.0.1.0-24", "10.0.1.0/24", 5)
        await world.define("one", conf(ipam(range="10.0.0.0/23")))
        await world.start()
        assert await world.assigned("10.0.0.0-23") == {"n1": "10.0.0.0/24"}
        await world.cluster.delete(IPPool, foreign.metadata.name, foreign.metadata.namespace)
        await moment()
        assert await world.assigned("10.0.0.0-23") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
