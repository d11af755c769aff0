"""Nodes come, go, come again under their names, and lose their NodeNetworkConfigs to somebody's hand."""

import asyncio

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import a_world, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store import StoreRules
from podtide.cluster.port import Unavailable
from podtide.controller.nodes.config_ownership import new_config
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import CONTAINER_FINALIZER, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig


async def test_a_node_that_goes_leaves_nothing_behind() -> None:
    async with a_world(rules=StoreRules(quarantine_seconds=60)) as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        await world.ask("n1", 16)
        await moment()
        await world.remove_node("n1")
        await moment()
        assert await world.holds(node.metadata.uid) == -1
        assert await world.find(NodeNetworkConfig, "n1") is None
        assert (await world.subnet()).reserved == 17  # in quarantine
        await moment(60)
        assert (await world.subnet()).reserved == 0


async def test_the_config_of_a_node_that_is_gone_stays_until_the_allocator_has_let_go() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        down: list[Exception | float | None] = [AllocatorUnavailable("down")] * 5
        world.allocator.faults = Script(delete=down)
        await world.remove_node("n1")
        await moment(0.4)
        config = await world.config("n1")
        assert config.metadata.deletion_timestamp is not None
        assert config.metadata.finalizers == [CONTAINER_FINALIZER]
        await moment(300)
        assert await world.find(NodeNetworkConfig, "n1") is None
        assert await world.holds(node.metadata.uid) == -1


async def test_a_node_that_goes_while_the_api_server_fails_is_counted_once() -> None:
    async with a_world() as world:
        faults = Script()
        replica = world.replica(faults=faults)
        replica.start()
        await world.add_node("n1")
        await moment()
        faults.steps["replace"] = [Unavailable("down")] * 5
        await world.remove_node("n1")
        await moment(300)
        assert not faults.steps["replace"]
        assert await world.find(NodeNetworkConfig, "n1") is None
        assert replica.controller.metrics.retired_nodes == 1


async def test_a_config_that_belongs_to_nobody_can_be_deleted() -> None:
    async with a_world() as world:
        world.replica().start()
        place = ObjectMeta(name="n1", namespace=SYSTEM_NAMESPACE, finalizers=[CONTAINER_FINALIZER])
        await world.cluster.create(NodeNetworkConfig(metadata=place), manager="kubectl")
        await moment()
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await moment()
        assert await world.find(NodeNetworkConfig, "n1") is None


async def test_a_node_made_again_under_its_name_starts_clean() -> None:
    async with a_world() as world:
        world.replica().start()
        old = await world.add_node("n1")
        await moment()
        await world.ask("n1", 16)
        await moment()
        before = await world.config("n1")
        await world.remove_node("n1")
        new = await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        assert config.metadata.uid != before.metadata.uid
        assert config.metadata.owner_references[0].uid == new.metadata.uid
        assert config.spec.requested_ip_count == 0
        (held,) = config.status.network_containers
        assert (held.id, held.ip_assignments) == (new.metadata.uid, [])
        assert await world.holds(old.metadata.uid) == -1


async def test_a_config_that_was_deleted_by_hand_is_made_again_and_the_node_keeps_its_addresses() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 16)
        await moment()
        before = await world.config("n1")
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await moment()
        config = await world.config("n1")
        assert config.metadata.uid != before.metadata.uid
        assert (config.spec.requested_ip_count, config.metadata.deletion_timestamp) == (0, None)
        assert config.status.network_containers == before.status.network_containers
        assert world.allocator.calls["delete"] == 0
        await world.ask("n1", 16)  # the agent says it anew
        await moment()
        assert (await world.config("n1")).status.network_containers == before.status.network_containers


async def test_a_finalizer_or_owner_that_somebody_took_off_is_put_back() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        bare = structs.replace(config.metadata, finalizers=[], owner_references=[])
        await world.cluster.replace(structs.replace(config, metadata=bare), manager="kubectl")
        await moment()
        mended = (await world.config("n1")).metadata
        assert mended.finalizers == [CONTAINER_FINALIZER]
        assert [owner.uid for owner in mended.owner_references] == [node.metadata.uid]


async def test_a_config_that_is_nobodys_is_let_be_until_its_node_comes() -> None:
    async with a_world() as world:
        world.replica().start()
        place = ObjectMeta(name="n1", namespace=SYSTEM_NAMESPACE)
        made = await world.cluster.create(NodeNetworkConfig(metadata=place), manager="kubectl")
        await moment(60)
        assert (await world.config("n1")).metadata.resource_version == made.metadata.resource_version
        node = await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        assert config.metadata.uid == made.metadata.uid
        assert config.status.network_containers[0].id == node.metadata.uid


async def test_a_node_that_a_stale_copy_lacks_loses_nothing() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        node = await world.add_node("n1")
        await moment()
        await world.ask("n1", 8)
        await moment()
        replica.cluster.hidden.add("n1")
        world.relist()
        await moment(60)
        assert await world.holds(node.metadata.uid) == 8
        assert world.allocator.calls["delete"] == 0


async def test_a_node_that_only_a_stale_copy_shows_gets_nothing_made() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        node = await world.add_node("n1")
        await moment()
        replica.cluster.writes.clear()
        replica.cluster.turn_deaf(Node)
        await world.remove_node("n1")
        await moment(30)
        assert await world.holds(node.metadata.uid) == -1
        assert await world.find_config("n1") is None
        assert replica.cluster.about("NodeNetworkConfig") == ["replace NodeNetworkConfig"]
        replica.cluster.hear()
        await moment()
        again = await world.add_node("n1")
        await moment()
        assert await world.holds(again.metadata.uid) == 0


async def test_a_node_that_went_while_no_controller_ran_is_noticed_by_the_next() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        gone, kept = await world.add_node("n1"), await world.add_node("n2")
        await moment()
        await replica.stop()
        await world.remove_node("n1")
        world.replica().start()
        await moment()
        assert await world.holds(gone.metadata.uid) == -1
        assert await world.holds(kept.metadata.uid) == 0
        assert await world.find(NodeNetworkConfig, "n1") is None


async def test_a_container_of_which_nothing_in_the_cluster_tells_is_found_at_the_start() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        gone, kept = await world.add_node("n1"), await world.add_node("n2")
        await moment()
        await replica.stop()
        config = await world.config("n1")
        free = structs.replace(config.metadata, finalizers=[])
        await world.cluster.replace(structs.replace(config, metadata=free), manager="kubectl")
        await world.remove_node("n1")
        await moment()
        assert await world.find(NodeNetworkConfig, "n1") is None
        assert await world.holds(gone.metadata.uid) == 0
        world.replica().start()
        await moment()
        assert await world.holds(gone.metadata.uid) == -1
        assert await world.holds(kept.metadata.uid) == 0


async def test_what_an_earlier_node_of_a_present_name_left_is_found_at_the_start_by_its_uid() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        earlier = await world.add_node("n1")
        await moment()
        await replica.stop()
        config = await world.config("n1")
        free = structs.replace(config.metadata, finalizers=[])
        await world.cluster.replace(structs.replace(config, metadata=free), manager="kubectl")
        await world.remove_node("n1")
        await moment()
        assert await world.find(NodeNetworkConfig, "n1") is None
        present = await world.add_node("n1")
        world.replica().start()
        await moment(10)
        assert await world.holds(earlier.metadata.uid) == -1
        assert await world.holds(present.metadata.uid) == 0


async def test_a_node_that_goes_with_its_config_just_deleted_by_hand_leaves_nothing_behind() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await world.remove_node("n1")
        await moment()
        assert await world.holds(node.metadata.uid) == -1
        assert await world.find(NodeNetworkConfig, "n1") is None


@pytest.mark.parametrize("comes_again", [True, False])
async def test_the_config_of_a_node_that_is_gone_goes_also_where_nobody_collects_garbage(
    *, comes_again: bool
) -> None:
    async with a_world() as world:
        world.stop_collecting_garbage()
        world.replica().start()
        old = await world.add_node("n1")
        await moment()
        before = await world.config("n1")
        await world.remove_node("n1")
        if comes_again:
            await world.add_node("n1")
        await moment()
        now = await world.find_config("n1")
        assert await world.holds(old.metadata.uid) == -1
        assert (now is not None and now.metadata.uid != before.metadata.uid) == comes_again


@pytest.mark.parametrize("collected", [True, False])
async def test_a_config_that_is_made_after_its_node_went_goes_in_a_term_that_never_saw_that_node(
    *, collected: bool
) -> None:
    """The request to make it was on its way for as long as that."""
    async with a_world() as world:
        if not collected:
            world.stop_collecting_garbage()
        gone = await world.add_node("n1")
        await world.remove_node("n1")
        world.replica().start()
        await moment(60)
        await world.cluster.create(new_config(gone), manager="kubectl")
        await moment(5)
        assert await world.find_config("n1") is None


async def test_a_node_that_goes_while_it_has_no_config_leaves_nothing_behind() -> None:
    async with a_world() as world:
        faults = Script()
        world.replica(faults=faults).start()
        node = await world.add_node("n1")
        await moment()
        faults.steps["create"] = [Unavailable("away")] * 100  # it cannot be made again
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await moment()
        assert await world.find_config("n1") is None
        await world.remove_node("n1")
        await moment(60)
        assert await world.holds(node.metadata.uid) == -1


async def test_a_node_that_does_not_control_its_config_is_made_to() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        (owner,) = config.metadata.owner_references
        loose = structs.replace(config.metadata, owner_references=[structs.replace(owner, controller=False)])
        await world.cluster.replace(structs.replace(config, metadata=loose), manager="kubectl")
        await moment()
        assert (await world.config("n1")).metadata.owner_references == [owner]


async def test_an_owner_that_another_program_added_does_not_make_the_config_that_nodes() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        other = await world.add_node("n2")
        await moment()
        await world.ask("n1", 16)
        await moment()
        config = await world.config("n1")
        beside = structs.replace(config.metadata.owner_references[0], name="n2", uid=other.metadata.uid)
        beside = structs.replace(beside, controller=False, block_owner_deletion=False)
        owners = [beside, *config.metadata.owner_references]
        await world.cluster.replace(
            structs.replace(config, metadata=structs.replace(config.metadata, owner_references=owners)),
            manager="another",
        )
        await asyncio.sleep(60)
        after = await world.config("n1")
        assert (after.metadata.uid, after.metadata.deletion_timestamp) == (config.metadata.uid, None)
        assert after.status.network_containers == config.status.network_containers
        assert world.allocator.calls["delete"] == 0


async def test_many_nodes_that_come_at_once_get_one_call_and_one_status_each() -> None:
    async with a_world("10.1.0.0/22") as world:
        replica = world.replica()
        replica.start()
        await moment()
        for number in range(150):
            await world.add_node(f"n{number}")
        await moment(30)
        assert world.allocator.calls["put"] == 150
        assert replica.cluster.about("NodeNetworkConfig").count("status NodeNetworkConfig") == 150
        assert len(await world.everybody()) == 150


@pytest.mark.parametrize("cluster", ["east", "west"])
async def test_nodes_of_another_cluster_in_the_same_subnet_are_none_of_its_business(cluster: str) -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        uid = await world.uid() if cluster == "east" else "uid-west"
        foreign = await world.foreign_node("there", 5, cluster=cluster, cluster_uid=uid)
        await world.stop()
        world.replica().start()
        await moment()
        left = -1 if cluster == "east" else 5
        assert await world.holds(foreign, cluster=cluster) == left


async def test_the_node_itself_is_never_written() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        assert (await world.cluster.get(Node, "n1")).metadata == node.metadata
