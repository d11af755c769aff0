"""NodeNetworkConfigs of another program are left alone, and nothing is granted before all they list is reserved."""

import pytest
from msgspec import structs

from controller import dnc
from controller.world import World, a_world, moment
from podtide.allocator.containers import ContainerReservation
from podtide.controller.nodes.foreign_configs import LEFT_ALONE
from podtide.core.errors import InvalidInput
from podtide.resources.foreign_config import (
    former_in,
    has_foreign_containers,
    is_foreign,
    is_reserved,
    marked_reserved,
    own_ids,
    with_former,
    without_marks,
)
from podtide.resources.metadata_keys import BEFORE_ANNOTATION, CONTAINER_FINALIZER
from podtide.resources.node_network_config import NodeNetworkConfig


async def reserve(world: World, config: NodeNetworkConfig) -> NodeNetworkConfig:
    """Reserve what an object lists, and say so on it."""
    (container,) = config.status.network_containers
    await world.allocator.reserve_container(
        ContainerReservation(
            id=config.node_uid,
            network="blue",
            subnet="pods",
            cluster="east",
            cluster_uid=await world.uid(),
            node=config.metadata.name,
            primary=container.primary_ip,
            addresses=tuple(each.ip for each in container.ip_assignments),
            request_uid=config.metadata.uid,
            generation=config.metadata.generation,
        )
    )
    return await world.cluster.replace(marked_reserved(config), manager="test")


async def test_what_another_program_wrote_stays_as_it_is() -> None:
    async with a_world() as world:
        node = await world.add_node("n1")
        config = await dnc.give(world.cluster, node, "10.1.0.10", "10.1.0.11", version=70)
        world.replica().start()
        await moment(60)
        assert await world.config("n1") == config
        assert await world.events(config) == [LEFT_ALONE]
        assert (await world.subnet()).reserved == 0
        assert not world.allocator.wishes


async def test_nothing_is_granted_to_anybody_before_all_of_it_is_reserved() -> None:
    async with a_world() as world:
        first = await dnc.give(world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3")
        second = await dnc.give(world.cluster, await world.add_node("n2"), "10.1.0.4", "10.1.0.5")
        world.replica().start()
        await world.add_node("n3")
        await moment(60)
        assert await world.find_config("n3") is None
        await reserve(world, first)
        await moment(60)
        assert await world.find_config("n3") is None
        await reserve(world, second)
        await moment()
        config = await world.config("n3")
        assert config.status.network_containers[0].primary_ip == "10.1.0.6"
        await world.everybody()


async def test_what_the_other_program_gives_later_stops_grants_until_it_is_reserved() -> None:
    async with a_world() as world:
        config = await dnc.give(world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3")
        config = await reserve(world, config)
        world.replica().start()
        await moment()
        config = await dnc.show(
            world.cluster, config, dnc.a_container("10.1.0.2", ["10.1.0.3", "10.1.0.4"], version=2)
        )
        await world.add_node("n2")
        await moment(60)
        assert await world.find_config("n2") is None
        await reserve(world, config)
        await moment()
        assert (await world.config("n2")).status.network_containers[0].primary_ip == "10.1.0.5"


async def test_grants_go_on_when_such_an_object_is_deleted() -> None:
    async with a_world() as world:
        node = await world.add_node("n1")
        config = await dnc.give(world.cluster, node, "10.1.0.2", "10.1.0.3")
        world.replica().start()
        await moment()
        await world.cluster.delete(NodeNetworkConfig, "n1", config.metadata.namespace)
        await moment()
        assert (await world.config("n1")).status.network_containers[0].id == node.metadata.uid


async def test_a_store_that_went_back_holds_again_what_another_program_still_serves() -> None:
    async with a_world() as world:
        config = await dnc.give(
            world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3", version=900
        )
        config = await reserve(world, config)
        world.replica().start()
        await moment()
        await world.allocator.begin_recovery("an administrator said so")
        await moment(60)
        held = await world.allocator.get_container(config.node_uid, cluster="east")
        assert (held.primary, [each.ip for each in held.addresses]) == ("10.1.0.2", ["10.1.0.3"])
        assert (await world.subnet()).reserved == 2
        assert is_foreign(await world.config("n1"))
        await world.add_node("n2")
        await moment()
        assert (await world.config("n2")).status.network_containers[0].primary_ip == "10.1.0.4"


async def test_an_object_with_podtides_finalizer_is_podtides_whatever_its_status_shows() -> None:
    async with a_world() as world:
        await world.add_node("n1")
        world.replica().start()
        await moment()
        config = await dnc.show(
            world.cluster, await world.config("n1"), dnc.a_container("10.1.0.77", ["10.1.0.78"])
        )
        assert CONTAINER_FINALIZER in config.metadata.finalizers
        await moment()
        (container,) = (await world.config("n1")).status.network_containers
        assert container.id == config.node_uid


async def test_what_there_was_before_can_be_read_again() -> None:
    async with a_world() as world:
        config = await dnc.give(
            world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3", given_up=["10.1.0.3"]
        )
        assert former_in(config) is None
        assert not is_reserved(config)
        marked = with_former(marked_reserved(config))
        assert is_reserved(marked)
        former = former_in(marked)
        assert former is not None
        assert (former.spec, former.status) == (config.spec, config.status)
        assert without_marks(marked) == config
        (theirs,) = config.status.network_containers
        assert own_ids(config) == {theirs.id: config.node_uid}
        broken = structs.replace(marked.metadata, annotations={BEFORE_ANNOTATION: "{"})
        with pytest.raises(InvalidInput, match="n1"):
            former_in(structs.replace(marked, metadata=broken))


async def test_versions_of_another_program_do_not_make_the_store_recover() -> None:
    async with a_world() as world:
        theirs = structs.replace(dnc.a_container("10.1.0.2", ["10.1.0.3"], version=900), vnet_id="blue")
        config = await dnc.give(world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3")
        config = await reserve(world, await dnc.show(world.cluster, config, theirs))
        world.replica().start()
        await moment()
        assert not (await world.allocator.list_clusters()).recovering
        await world.add_node("n2")
        await moment()
        assert (await world.config("n2")).status.network_containers[0].primary_ip == "10.1.0.4"


async def test_an_old_status_that_somebody_put_back_is_not_another_programs() -> None:
    async with a_world() as world:
        given = await dnc.give(world.cluster, await world.add_node("n1"), "10.1.0.2", "10.1.0.3")
        own = structs.replace(
            given, metadata=structs.replace(given.metadata, finalizers=[CONTAINER_FINALIZER])
        )
        (former,) = own.status.network_containers
        assert not has_foreign_containers(own)
        assert own_ids(own) == {former.id: former.id}, "it is reported as it is"
        for mark in (marked_reserved, with_former):  # a hand-over or a way back that is not finished
            assert has_foreign_containers(mark(own))
            assert own_ids(mark(own)) == {former.id: own.node_uid}
