"""The slices controller as a part of the controller: it works during a term, and can be left out."""

from msgspec import structs

from controller.slices.network_world import conf, ipam
from controller.world import OPTIONS, World, a_world, moment
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec


async def define(world: World) -> None:
    definition = NetworkAttachmentDefinition(
        metadata=ObjectMeta(name="blue", namespace="default"),
        spec=NetworkAttachmentDefinitionSpec(config=conf(ipam(network_name="blue"))),
    )
    await world.cluster.create(definition, manager="kubectl")


async def test_a_controller_looks_after_secondary_networks_too() -> None:
    async with a_world() as world:
        await define(world)
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment(3)
        assert (await world.cluster.get(IPPool, "blue-n1", SYSTEM_NAMESPACE)).spec.range == "10.0.0.0/24"
        assert await world.find_config("n1") is not None
        counted = replica.controller.metrics
        assert (counted.slices["blue"].assigned, counted.slices["blue"].total) == (1, 4)
        assert counted.writes["IPPool"] == 2, "made, and confirmed"


async def test_it_can_be_left_out() -> None:
    async with a_world() as world:
        await define(world)
        replica = world.replica(structs.replace(OPTIONS, secondary_networks=False))
        replica.start()
        await world.add_node("n1")
        await moment(3)
        assert await world.find(IPPool, "blue-n1") is None
        assert replica.controller.metrics.network_looks == 0


async def test_of_two_replicas_only_the_leader_gives_slices_and_the_next_one_goes_on() -> None:
    async with a_world() as world:
        await world.ship_lease()
        await define(world)
        first, second = world.replica(name="a"), world.replica(name="b")
        first.start(elected=True)
        await moment()
        second.start(elected=True)
        await world.add_node("n1")
        await moment(10)
        assert first.cluster.about("IPPool") == ["create IPPool", "replace IPPool"]
        assert second.cluster.work() == []
        await first.stop()
        await world.add_node("n2")
        await moment(10)
        assert second.cluster.about("IPPool") == ["create IPPool", "replace IPPool"]
        assert (await world.cluster.get(IPPool, "blue-n2", SYSTEM_NAMESPACE)).spec.range == "10.0.1.0/24"
