"""For how many pods Nodes publish that they have addresses of secondary networks."""

import asyncio
from typing import Any

from msgspec import structs

from cluster.faulty_cluster import Script
from controller.slices.network_world import conf, ipam
from controller.world import OPTIONS, Replica, World, a_world, moment
from podtide.cluster.port import NotFound, Patch
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node

PLACEMENT = structs.replace(OPTIONS, placement=True)
BLUE = "podtide.io/net-blue"


async def define(world: World, **keys: object) -> None:
    """Define the network blue, or change it."""
    spec = NetworkAttachmentDefinitionSpec(config=conf(ipam(network_name="blue", **keys)))
    try:
        found = await world.cluster.get(NetworkAttachmentDefinition, "blue", "default")
        await world.cluster.replace(structs.replace(found, spec=spec), manager="kubectl")
    except NotFound:
        place = ObjectMeta(name="blue", namespace="default")
        await world.cluster.create(NetworkAttachmentDefinition(metadata=place, spec=spec), manager="kubectl")


async def undefine(world: World) -> None:
    await world.cluster.delete(NetworkAttachmentDefinition, "blue", "default")


async def published(world: World, name: str) -> dict[str, str]:
    """What a Node publishes, in capacity and allocatable alike."""
    status = (await world.cluster.get(Node, name)).status
    assert status.capacity == {key: text for key, text in status.allocatable.items() if key != "pods"}
    return status.capacity


async def patch(world: World, name: str, **changes: Any) -> None:
    await world.cluster.patch(Patch(Node, name, changes={"status": changes}, status=True), manager="kubelet")


async def started(world: World, *nodes: str) -> Replica:
    replica = world.replica(PLACEMENT)
    replica.start()
    for name in nodes:
        await world.add_node(name)
        await moment()
    await moment(5)
    return replica


def status_writes(replica: Replica) -> int:
    return replica.controller.metrics.writes["Node/status"]


async def test_nodes_publish_for_how_many_pods_their_slices_have_addresses_and_0_without_one() -> None:
    async with a_world() as world:
        await define(world, range="10.0.0.0/24")
        await started(world, "n1", "n2")
        assert await published(world, "n1") == {BLUE: "254"}
        assert await published(world, "n2") == {BLUE: "0"}


async def test_beside_it_stands_what_the_node_has_of_its_subnet() -> None:
    async with a_world("10.1.0.0/16") as world:
        await define(world)
        replica = await started(world, "n1")
        await world.state("n1", 3)
        await moment(5)
        assert await published(world, "n1") == {BLUE: "254", IPV4_RESOURCE: "250"}
        await undefine(world)
        await moment(5)
        assert await published(world, "n1") == {IPV4_RESOURCE: "250"}
        writes = status_writes(replica)
        await moment(3_600)
        assert status_writes(replica) == writes


async def test_without_placement_nothing_is_published() -> None:
    async with a_world() as world:
        await define(world)
        world.replica().start()
        await world.add_node("n1")
        await moment(5)
        assert await published(world, "n1") == {}


async def test_a_network_that_is_gone_is_removed_from_the_node() -> None:
    async with a_world() as world:
        await define(world)
        await started(world, "n1")
        await undefine(world)
        await moment(5)
        assert await published(world, "n1") == {}


async def test_a_network_that_went_while_no_controller_ran_is_removed() -> None:
    async with a_world() as world:
        await define(world)
        first = await started(world, "n1")
        await first.stop()
        await undefine(world)
        await started(world)
        assert await published(world, "n1") == {}


async def test_a_controller_that_leaves_secondary_networks_alone_removes_their_numbers() -> None:
    async with a_world() as world:
        await define(world)
        first = await started(world, "n1")
        await first.stop()
        world.replica(structs.replace(PLACEMENT, secondary_networks=False)).start()
        await moment(5)
        assert await published(world, "n1") == {}


async def test_a_new_controller_leaves_what_is_published_as_it_is() -> None:
    async with a_world() as world:
        await define(world)
        first = await started(world, "n1", "n2")
        await first.stop()
        second = await started(world)
        assert await published(world, "n1") == {BLUE: "254"}
        assert status_writes(second) == 0


async def test_until_slices_are_known_what_is_published_is_left_as_it_is() -> None:
    async with a_world() as world:
        await define(world)
        first = await started(world, "n1")
        await first.stop()
        await undefine(world)
        slow = Script(list=[*([None] * 6), 60.0])  # IPPools are listed last
        world.replica(PLACEMENT, faults=slow).start()
        await moment(50)
        assert await published(world, "n1") == {BLUE: "254"}
        assert "unexpected error" not in world.lines.getvalue()
        await moment(20)
        assert await published(world, "n1") == {}


async def test_what_a_kubelet_sets_to_0_is_published_again() -> None:
    async with a_world() as world:
        await define(world)
        await started(world, "n1")
        await patch(world, "n1", capacity={BLUE: "0"}, allocatable={BLUE: "0"})
        await moment()
        assert await published(world, "n1") == {BLUE: "254"}
        await patch(world, "n1", allocatable={BLUE: None})
        await moment()
        assert await published(world, "n1") == {BLUE: "254"}


async def test_a_number_that_is_not_in_both_places_is_removed_with_its_network() -> None:
    async with a_world() as world:
        await started(world, "n1")
        await patch(world, "n1", allocatable={"podtide.io/net-red": "4", "pods": "110"})
        await moment()
        assert await published(world, "n1") == {}


async def test_numbers_are_lowered_at_most_every_half_minute_and_raised_at_once() -> None:
    async with a_world() as world:
        await define(world)
        await started(world, "n1")
        await define(world, range_end="10.0.0.20")
        await moment(5)
        assert await published(world, "n1") == {BLUE: "20"}
        await define(world, range_end="10.0.0.10")
        await moment(LOWER_EVERY_SECONDS - 10)
        assert await published(world, "n1") == {BLUE: "20"}
        await define(world, range_end="10.0.0.30")
        await moment(1)
        assert await published(world, "n1") == {BLUE: "30"}
        await define(world, range_end="10.0.0.10")
        await moment(LOWER_EVERY_SECONDS)
        assert await published(world, "n1") == {BLUE: "10"}


async def test_a_node_that_comes_back_under_its_name_is_written_again() -> None:
    async with a_world() as world:
        await define(world)
        await started(world, "n1")
        await world.cluster.delete(Node, "n1")
        await asyncio.sleep(0)
        await world.add_node("n1")
        await moment(5)
        assert await published(world, "n1") == {BLUE: "254"}
