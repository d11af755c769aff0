"""For how many pods each node has addresses of secondary networks, as the slices controller tells placement."""

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.slices.network_world import NetworkWorld, a_network_world, conf, ipam, moment
from podtide.controller.slices.program import SliceController
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE

BLUE = "podtide.io/net-blue"


class RoomListener:
    """Collects the nodes that are told to have other rooms."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def start(self, world: NetworkWorld) -> SliceController:
        replica = await world.start(room_changed=self.told.append)
        return replica.controller

    def news(self) -> set[str]:
        """The nodes told of since the last time."""
        found = set(self.told)
        self.told.clear()
        return found


async def started(world: NetworkWorld) -> tuple[SliceController, RoomListener]:
    listener = RoomListener()
    return await listener.start(world), listener


async def test_a_node_has_room_for_as_many_pods_as_its_slice_has_addresses() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue", exclude=["10.0.1.0/25"])))
        controller, listener = await started(world)
        assert controller.rooms("n1") == {BLUE: 254}
        assert controller.rooms("n2") == {BLUE: 127}
        assert listener.news() == {"n1", "n2"}


async def test_of_two_ranges_the_smaller_decides() -> None:
    async with a_network_world("n1") as world:
        second = {"range": "fd00::/48", "node_slice_size": "/64"}
        await world.define("blue", conf(ipam(network_name="blue", ipRanges=[second])))
        controller, _listener = await started(world)
        assert controller.rooms("n1") == {BLUE: 254}
        await world.define(
            "six", conf(ipam(network_name="six", range="fd01::/48", node_slice_size="/64"), "six-conf")
        )
        await moment()
        assert controller.rooms("n1") == {BLUE: 254, "podtide.io/net-six": 1_000_000}


async def test_a_node_for_which_no_slice_is_left_has_room_for_none_until_one_is_free() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/24")))
        controller, listener = await started(world)
        assert (controller.rooms("n1"), controller.rooms("n2")) == ({BLUE: 254}, {BLUE: 0})
        listener.news()
        await world.remove_node("n1")
        await moment(1_000)
        assert controller.rooms("n2") == {BLUE: 254}
        assert "n2" in listener.news()


async def test_a_pod_that_comes_or_goes_changes_nothing() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, listener = await started(world)
        listener.news()
        await world.hold("blue-n1", 1, 2, 3)
        await world.hold("blue-n1", 2)
        await moment()
        assert controller.rooms("n1") == {BLUE: 254}
        assert listener.news() == set()


async def test_a_definition_that_gives_less_leaves_room_for_the_pods_that_are_there() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, listener = await started(world)
        await world.hold("blue-n1", 1, 2, 200)
        listener.news()
        await world.define("blue", conf(ipam(network_name="blue", range_end="10.0.0.2")))
        await moment()
        assert controller.rooms("n1") == {BLUE: 3}
        assert listener.news() == {"n1"}
        await world.hold("blue-n1", 1, 2)
        await moment()
        assert controller.rooms("n1") == {BLUE: 2}
        assert listener.news() == {"n1"}


async def test_where_two_definitions_of_a_network_give_different_addresses_all_of_them_count() -> None:
    async with a_network_world("n1") as world:
        await world.define("low", conf(ipam(network_name="blue", range_end="10.0.0.10")))
        await world.define(
            "high", conf(ipam(network_name="blue", range_start="10.0.0.5", range_end="10.0.0.20"))
        )
        controller, _listener = await started(world)
        assert controller.rooms("n1") == {BLUE: 20}


async def test_where_a_definition_of_a_network_shares_a_pool_its_addresses_do_not_count() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue", range_end="10.0.0.10")))
        controller, _listener = await started(world)
        await world.define("uncut", conf(ipam(network_name="blue", node_slice_size=None)))
        await moment()
        assert controller.rooms("n1") == {BLUE: 10}


async def test_while_a_change_of_the_range_is_refused_there_is_room_for_the_pods_that_are_there() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, _listener = await started(world)
        await world.hold("blue-n1", 7)
        await world.define("blue", conf(ipam(network_name="blue", range="10.9.0.0/22")))
        await moment()
        assert controller.rooms("n1") == {BLUE: 1}
        await world.hold("blue-n1")
        await moment()
        assert controller.rooms("n1") == {BLUE: 254}


async def test_a_network_that_is_gone_has_no_number_though_pods_still_hold_addresses_of_it() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, listener = await started(world)
        await world.hold("blue-n1", 1)
        listener.news()
        await world.undefine("blue")
        await moment()
        assert controller.rooms("n1") == {}
        assert listener.news() == {"n1"}


async def test_while_its_definition_cannot_be_read_a_network_has_no_number() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, _listener = await started(world)
        await world.define("blue", conf(ipam(network_name="blue", exclude=["nothing"])))
        await moment()
        assert controller.rooms("n1") == {}
        await world.define("blue", conf(ipam(network_name="blue")))
        await moment()
        assert controller.rooms("n1") == {BLUE: 254}


async def test_networks_without_a_name_or_without_slices_have_no_number() -> None:
    async with a_network_world("n1") as world:
        await world.define("unnamed", conf(ipam()))
        await world.define(
            "shared", conf(ipam(network_name="red", range="10.7.0.0/24", node_slice_size=None))
        )
        long_name = "a-network-with-a-name-of-sixty-characters-which-is-too-many-x"
        await world.define("long", conf(ipam(network_name=long_name, range="10.8.0.0/22"), "long-conf"))
        controller, _listener = await started(world)
        assert (await world.pool("10.0.0.0-22-n1")).spec.range == "10.0.0.0/24"
        assert (await world.pool(f"{long_name}-n1")).spec.range == "10.8.0.0/24"
        assert controller.rooms("n1") == {}


async def test_a_pool_that_no_agent_may_use_yet_has_room_for_none() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, listener = await started(world)
        listener.news()
        (node,) = await world.add_nodes("n2")
        assert controller.rooms("n2") == {BLUE: 0}
        await moment()
        assert controller.rooms("n2") == {BLUE: 254}
        assert listener.news() == {"n2"}
        pool = await world.pool("blue-n2")
        others = pool.metadata.annotations | {"podtide.io/node-uid": f"not {node.metadata.uid}"}
        marked = structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=others))
        world.replicas[0].cluster.turn_deaf(IPPool)  # so that the controller does not take it over at once
        await world.cluster.replace(marked, manager="test")
        await moment()
        world.replicas[0].cluster.hear()
        await moment(0.01)
        assert controller.rooms("n2") == {BLUE: 0}
        assert listener.news() == {"n2"}


async def test_a_pool_that_is_not_confirmed_has_room_for_none() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        listener = RoomListener()
        replica = await world.start(Script(replace=[60.0]), room_changed=listener.told.append)
        assert (await world.pool("blue-n1")).spec.range == "10.0.0.0/24"
        assert replica.controller.rooms("n1") == {BLUE: 0}
        await moment(60)
        assert replica.controller.rooms("n1") == {BLUE: 254}


async def test_where_definitions_disagree_what_is_in_force_counts() -> None:
    async with a_network_world("n1") as world:
        await world.define("older", conf(ipam(network_name="blue")))
        await moment()
        await world.define("newer", conf(ipam(network_name="blue")))
        controller, _listener = await started(world)
        second = {"range": "fd00::/48", "node_slice_size": "/64"}
        await world.define("older", conf(ipam(network_name="blue", ipRanges=[second])))
        await moment()
        assert controller.rooms("n1") == {BLUE: 254}
        slow_lists = Script(list=[None, 1.0])  # definitions are known before NodeSlicePools
        replica = await world.start(slow_lists, room_changed=RoomListener().told.append)
        assert replica.controller.rooms("n1") == {BLUE: 254}


async def test_pools_that_are_gone_are_forgotten() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, _listener = await started(world)
        assert controller._rooms is not None
        assert controller._rooms._pools == {"n1": {"blue-n1"}}
        await world.undefine("blue")
        await moment()
        assert controller._rooms._pools == {}


async def test_a_pool_that_is_being_deleted_has_room_for_the_pods_that_hold_addresses_of_it() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        controller, _listener = await started(world)
        pool = await world.hold("blue-n1", 4, 5)
        kept = structs.replace(pool.metadata, finalizers=["example.com/wait"])
        await world.cluster.replace(structs.replace(pool, metadata=kept), manager="test")
        await world.cluster.delete(IPPool, "blue-n1", SYSTEM_NAMESPACE)
        await moment()
        assert controller.rooms("n1") == {BLUE: 2}


@pytest.mark.parametrize("which", range(4))
async def test_nothing_is_known_until_everything_was_listed(which: int) -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await started(world)
        listener = RoomListener()
        slow = Script(list=[*([None] * which), 60.0])
        replica = await world.start(slow, room_changed=listener.told.append)
        assert replica.controller.rooms("n1") is None
        assert listener.news() == set()
        await moment(60)
        assert replica.controller.rooms("n1") == {BLUE: 254}
        assert listener.news() == {"n1"}


async def test_who_does_not_ask_is_told_nothing() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        replica = await world.start()
        assert replica.controller.rooms("n1") is None
