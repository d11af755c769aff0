"""Nodes whose pods get two addresses, one of each family."""

from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.resources.metadata_keys import SUBNET_V6_LABEL
from podtide.resources.node_network_config import ConfigStatus

BOTH = structs.replace(OPTIONS, subnet_v6="pods6")


async def test_a_node_of_two_families_has_a_container_in_each_subnet() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(BOTH).start()
        node = await world.add_node("n1", None, "192.168.0.4", "fd00::4")
        await moment()
        await world.ask("n1", 3)
        await moment()
        config = await world.config("n1")
        first, second = config.status.network_containers
        assert (first.id, second.id) == (node.metadata.uid, f"{node.metadata.uid}-v6")
        assert (first.primary_ip, first.primary_ipv6) == ("10.1.0.2", "")
        assert (second.primary_ip, second.primary_ipv6) == ("", "fd00:1::2")
        assert (second.default_gateway_v6, second.subnet_address_space_v6) == ("fd00:1::1", "fd00:1::/64")
        assert (first.node_ip, second.node_ip) == ("192.168.0.4", "fd00::4")
        assert [len(held.ip_assignments) for held in (first, second)] == [3, 3]
        assert config.status.assigned_ip_count == 6
        assert 2**52 < (await world.cluster_subnet("pods6")).status.capacity <= 2**53


async def test_names_are_released_in_the_container_they_belong_to() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(BOTH).start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 3)
        await moment()
        first, second = await world.names("n1"), await world.names("n1", 1)
        await world.ask("n1", 2, release=[first[0], second[1]])
        await moment()
        assert await world.names("n1") == first[1:]
        assert await world.names("n1", 1) == [second[0], second[2]]


async def test_a_label_gives_single_nodes_a_second_subnet_and_they_keep_it() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "six")
        world.replica().start()
        await world.add_node("n1", {SUBNET_V6_LABEL: "six"})
        await world.add_node("n2")
        await moment()
        assert len((await world.config("n1")).status.network_containers) == 2
        assert len((await world.config("n2")).status.network_containers) == 1
        await world.label("n1", {})
        await moment()
        config = await world.config("n1")
        assert len(config.status.network_containers) == 2
        assert "names no subnet, but the node's addresses are in six" in condition(config, "Placed").message


async def test_both_containers_of_a_node_go_with_it() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(BOTH).start()
        node = await world.add_node("n1")
        await moment()
        await world.remove_node("n1")
        await moment()
        assert await world.holds(node.metadata.uid) == -1
        assert await world.holds(f"{node.metadata.uid}-v6") == -1


async def test_a_node_of_two_families_begins_when_both_have_room_for_it() -> None:
    async with a_world("10.1.0.0/29") as world:  # 5 addresses
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(BOTH).start()
        await world.reserve(5)
        await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        assert config.status.network_containers == []
        assert condition(config, "Granted").reason == "SubnetFull"
        await world.allocator.grow_subnet("blue", "pods", ("10.1.1.0/29",))
        await moment(120)
        assert len((await world.config("n1")).status.network_containers) == 2


async def test_a_node_that_has_begun_keeps_what_it_is_shown_when_one_family_is_refused() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00:1::/64", "pods6")
        world.replica(BOTH).start()
        await world.add_node("n1")
        await moment()
        world.allocator.faults = Script(put=[None, AllocatorUnavailable("away")] * 30)
        await world.ask("n1", 4)
        await moment(30)
        assert len((await world.config("n1")).status.network_containers) == 2


async def test_what_one_subnet_grants_is_shown_also_when_the_other_refuses() -> None:
    async with a_world() as world:
        world.replica(BOTH).start()
        await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        (held,) = config.status.network_containers
        assert held.primary_ip == "10.1.0.2"
        assert config.status.status is ConfigStatus.ERROR
        granted = condition(config, "Granted")
        assert granted.reason == "NoSuchSubnet"
        assert "--subnet-v6" in granted.message
        await world.add_subnet("fd00:1::/64", "pods6")
        await moment(6)
        assert (await world.granted("n1")).status == "True"
