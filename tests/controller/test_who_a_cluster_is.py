"""A name at the allocator is one cluster's: another under it, a wrong kubeconfig or a clone retires nobody's nodes."""

from typing import Any

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, World, a_world, moment, wish_of
from podtide.allocator.errors import AllocatorUnavailable
from podtide.controller.nodes.config_ownership import without_finalizer
from podtide.core.subnet.cluster_identity import TERM_SECONDS
from podtide.core.subnet.retirement_brake import LOOK_AGAIN_SECONDS
from podtide.resources.event import Event
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig

QUARANTINE = 400.0


async def nodes_with_addresses(world: World, count: int) -> list[str]:
    """The uids of new nodes, each with addresses."""
    uids = []
    for number in range(count):
        node = await world.add_node(f"n{number}")
        await moment()
        await world.ask(f"n{number}", 3)
        uids.append(node.metadata.uid)
    await moment()
    for uid in uids:
        assert await world.holds(uid) == 3
    return uids


async def holding(world: World, uids: list[str]) -> int:
    return [await world.holds(uid) for uid in uids].count(3)


async def lose_nodes(world: World, count: int) -> None:
    """Nodes go while no controller runs, and somebody takes the finalizers off."""
    world.stop_collecting_garbage()
    for number in range(count):
        config = await world.config(f"n{number}")
        await world.remove_node(f"n{number}")
        await world.cluster.replace(without_finalizer(config), manager="kubectl")
        await world.cluster.delete(NodeNetworkConfig, f"n{number}", SYSTEM_NAMESPACE)


async def test_a_second_cluster_under_the_same_name_retires_nobody_and_is_told_why() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 2)
        await world.stop()
        other = World(world.allocator, seed=2)
        stranger = other.replica()
        try:
            stranger.start()
            await other.add_node("n0")
            await moment(QUARANTINE)
            assert await holding(world, uids) == 2
            assert stranger.cluster.work() == ["create Event"]  # and nothing else was written
            (event,) = (await other.cluster.list(Event, SYSTEM_NAMESPACE)).items
            assert event.reason == "ControllerRefused"
            assert (
                f"belongs to the cluster whose namespace kube-system has uid {await world.uid()}"
                in event.message
            )
            assert "--cluster-name" in event.message
            assert other.lines.getvalue().count("the allocator refuses this controller") == 1
            assert stranger.controller.metrics.refused
            await world.allocator.move_cluster("east", uid=await other.uid())
            await moment(60.0)
            assert [stranger.controller.metrics.refused] == [False]
            assert await other.find_config("n0") is not None
            await moment(QUARANTINE)
            assert await holding(world, uids) == 2  # they are another cluster's, and stay so
        finally:
            await other.stop()
            other.cluster.close()


async def test_an_api_server_that_becomes_another_clusters_in_the_middle_of_a_term_is_not_acted_on() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        uids = await nodes_with_addresses(world, 6)
        own, other = world.cluster.snapshot(), World(world.allocator, seed=2)
        await other.add_node("stranger")
        written = len(replica.cluster.work())
        world.cluster.restore(other.cluster.snapshot())
        await moment(3 * LOOK_AGAIN_SECONDS)
        assert await holding(world, uids) == 6
        assert replica.cluster.work()[written:] == ["create Event"]
        assert await world.events() == ["ControllerRefused"]
        assert replica.controller.metrics.refused
        world.cluster.restore(own)
        await moment(2 * LOOK_AGAIN_SECONDS)
        assert [replica.controller.metrics.refused] == [False]
        assert await holding(world, uids) == 6
        await world.ask("n0", 5)
        await moment()
        assert len(await world.names("n0")) == 5
        other.cluster.close()


async def test_which_cluster_it_is_is_read_again_only_where_objects_were_listed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_world() as world:
        replica, reads = world.replica(), 0
        get = replica.cluster.get

        async def count(kind: type[Any], *arguments: Any, **more: Any) -> Any:
            nonlocal reads
            reads += kind is Namespace
            return await get(kind, *arguments, **more)

        monkeypatch.setattr(replica.cluster, "get", count)
        replica.start()
        await nodes_with_addresses(world, 1)
        backup = world.cluster.snapshot()
        await world.add_node("n1")
        await moment(600.0)
        assert reads == 1
        world.cluster.restore(backup)
        await moment(600.0)
        lists = 4  # of Nodes, NodeNetworkConfigs, ClusterSubnets and their states
        assert 1 < reads <= 1 + lists


async def test_a_cloned_cluster_waits_while_its_original_acts() -> None:
    async with a_world() as world:
        uid = await world.uid()
        await world.ship_lease()
        world.replica(name="original").start(elected=True)
        uids = await nodes_with_addresses(world, 1)
        clone = World(world.allocator)  # of the same seed: the uid of kube-system is the same
        assert await clone.uid() == uid
        await clone.ship_lease()
        copy = clone.replica(structs.replace(OPTIONS, cluster="clone"), name="copy")
        try:
            copy.start(elected=True)
            await moment(60.0)
            assert copy.controller.metrics.refused
            assert "cloned from a backup" in clone.lines.getvalue()
            assert await holding(world, uids) == 1
            await world.stop()
            await moment(TERM_SECONDS)
            assert [copy.controller.metrics.refused] == [False]
        finally:
            await clone.stop()
            clone.cluster.close()


async def test_the_next_leader_of_a_cluster_does_not_wait_for_the_last_ones_term() -> None:
    async with a_world() as world:
        await world.ship_lease()
        first, second = world.replica(name="first"), world.replica(name="second")
        first.start(elected=True)
        await moment(5.0)
        second.start(elected=True)
        await moment(5.0)
        await first.stop()
        await moment(5.0)
        assert second.controller.metrics.leading
        assert not second.controller.metrics.refused


@pytest.mark.parametrize("uid", ["uid-of-another", ""])
async def test_the_sweep_passes_over_containers_of_another_cluster_and_of_none(uid: str) -> None:
    async with a_world() as world:
        foreign = await world.foreign_node("there", 5, cluster="east", cluster_uid=uid)
        world.replica().start()
        await moment(60.0)
        assert await world.holds(foreign) == 5


async def test_a_container_without_uid_is_adopted_when_its_node_is_seen_here() -> None:
    async with a_world() as world:
        node = await world.add_node("n0")
        wish = structs.replace(wish_of("n0", 2, cluster="east"), id=node.metadata.uid)
        before = (await world.allocator.put_container(wish)).cluster_uid
        world.replica().start()
        await moment()
        after = await world.allocator.get_container(node.metadata.uid, cluster="east")
        assert (before, after.cluster_uid) == ("", await world.uid())


@pytest.mark.parametrize("with_configs", [True, False])
async def test_many_nodes_that_seem_gone_at_the_start_wait_for_a_second_look(with_configs: bool) -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 6)
        await world.stop()
        if with_configs:
            for number in range(4):
                await world.remove_node(f"n{number}")
        else:
            await lose_nodes(world, 4)
        late = world.replica()
        late.start()
        await moment(LOOK_AGAIN_SECONDS - 10)
        assert await holding(world, uids) == 6
        assert late.controller.metrics.held_retirements == 4
        assert (await world.events()).count("RetirementHeld") == 1
        await moment(20.0)
        assert await holding(world, uids) == 2
        assert late.controller.metrics.held_retirements == 0


async def test_many_nodes_that_a_restore_took_away_in_the_middle_of_a_term_wait_too() -> None:
    async with a_world("10.1.0.0/26") as world:
        replica = world.replica()
        replica.start()
        await moment(5.0)
        backup = world.cluster.snapshot()
        uids = await nodes_with_addresses(world, 6)
        world.cluster.restore(backup)
        await moment(LOOK_AGAIN_SECONDS - 10)
        assert await holding(world, uids) == 6
        assert replica.controller.metrics.held_retirements == 6
        assert (await world.events()).count("RetirementHeld") == 1
        await moment(20.0)
        assert await holding(world, uids) == 0
        assert replica.controller.metrics.held_retirements == 0


async def test_nodes_that_a_second_restore_brings_back_keep_what_they_have() -> None:
    async with a_world("10.1.0.0/26") as world:
        replica = world.replica()
        replica.start()
        await moment(5.0)
        backup = world.cluster.snapshot()
        uids = await nodes_with_addresses(world, 6)
        latest = world.cluster.snapshot()
        world.cluster.restore(backup)
        await moment(60.0)
        assert replica.controller.metrics.held_retirements == 6
        world.cluster.restore(latest)
        await moment(2 * LOOK_AGAIN_SECONDS)
        assert await holding(world, uids) == 6
        assert replica.controller.metrics.held_retirements == 0


async def test_three_nodes_that_a_list_anew_lacks_are_retired_at_once() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        uids = await nodes_with_addresses(world, 4)
        replica.cluster.turn_deaf(Node)
        for number in range(3):
            await world.remove_node(f"n{number}")
        world.relist()
        replica.cluster.hear()
        await moment(30.0)
        assert await holding(world, uids) == 1


async def test_a_node_without_anything_that_a_list_anew_lacks_holds_up_nobody_under_its_name() -> None:
    async with a_world() as world:
        replica = world.replica()
        backup = world.cluster.snapshot()
        world.allocator.faults = Script(put=[AllocatorUnavailable("not yet")] * 3)
        replica.start()
        await world.add_node("n0")
        await moment()
        world.cluster.restore(backup)
        node = await world.add_node("n0")
        await moment(200.0)
        assert await world.holds(node.metadata.uid) == 0


async def test_nodes_that_are_back_at_the_second_look_keep_what_they_have() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 6)
        await world.stop()
        replica = world.replica()
        replica.cluster.hidden = {f"n{number}" for number in range(6)}  # an API server that was restored, say
        replica.start()
        await moment(60.0)
        assert await holding(world, uids) == 6
        replica.cluster.hidden = set()
        world.relist()
        await moment(LOOK_AGAIN_SECONDS)
        assert await holding(world, uids) == 6
        assert replica.controller.metrics.held_retirements == 0


async def test_three_nodes_that_went_meanwhile_are_retired_at_once() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 4)
        await world.stop()
        await lose_nodes(world, 3)
        world.replica().start()
        await moment(5.0)
        assert await holding(world, uids) == 1


async def test_nodes_whose_deletion_was_watched_are_retired_at_once_however_many() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 6)
        for number in range(6):
            await world.remove_node(f"n{number}")
        await moment(5.0)
        assert await holding(world, uids) == 0
