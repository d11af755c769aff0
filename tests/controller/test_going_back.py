"""A cluster restored from a backup under a running controller: requests are taken anew, and nobody loses anything."""

from cluster.faulty_cluster import Script
from controller.world import World, a_world, moment
from podtide.allocator.containers import LastWish
from podtide.allocator.errors import AllocatorUnavailable, StaleWish
from podtide.controller.grant_condition import condition_of
from podtide.controller.program import ControllerOptions
from podtide.resources.base import ObjectMeta
from podtide.resources.config_confirmation import CONFIRMED, is_confirmed
from podtide.resources.metadata_keys import DOUBT_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig


async def test_a_node_is_served_after_its_request_went_back() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        backup = world.cluster.snapshot()
        for count in (6, 8):
            await world.ask("n1", count)
            await moment()
        held = await world.names("n1")
        world.cluster.restore(backup)
        await moment(30)
        assert (await world.config("n1")).spec.requested_ip_count == 4
        assert await world.names("n1") == held  # its status was written anew, too
        assert (await world.granted("n1")).status == "True"
        assert await world.holds(node.metadata.uid) == 8
        await world.ask("n1", 10)
        await moment()
        assert len(await world.names("n1")) == 10


async def test_a_status_that_went_back_alone_is_written_anew() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        backup = world.cluster.snapshot()  # before the controller has answered
        await moment(30)
        held = await world.names("n1")
        assert len(held) == 4
        world.cluster.restore(backup)
        await moment(30)
        assert await world.names("n1") == held


async def test_what_was_given_up_since_the_backup_does_not_come_back() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await world.add_node("n2")
        await moment()
        await world.ask("n1", 8)
        await moment(30)
        backup = world.cluster.snapshot()
        given_up = (await world.names("n1"))[4:]
        await world.ask("n1", 4, given_up)
        await moment(60)
        await world.ask("n2", 240)
        await moment()
        world.cluster.restore(backup)
        await moment(30)
        assert not set(await world.names("n1")) & set(given_up)
        assert await world.everybody()


async def test_a_controller_that_starts_after_the_restore_takes_requests_anew() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment()
        backup = world.cluster.snapshot()
        await world.ask("n1", 6)
        await moment()
        await first.stop()
        world.cluster.restore(backup)
        world.replica(name="b").start()
        await moment()
        assert (len(await world.names("n1")), (await world.granted("n1")).status) == (6, "True")


async def test_a_config_that_was_deleted_and_is_back_is_taken_anew() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        backup = world.cluster.snapshot()
        first = await world.config("n1")
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await moment()
        await world.ask("n1", 6)
        await moment()
        world.cluster.restore(backup)
        await moment(30)
        assert (await world.config("n1")).metadata.uid == first.metadata.uid
        assert (len(await world.names("n1")), (await world.granted("n1")).status) == (6, "True")


async def test_a_node_that_was_deleted_and_is_back_has_a_container_again() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        backup = world.cluster.snapshot()
        await world.remove_node("n1")
        await moment()
        assert await world.holds(node.metadata.uid) == -1
        world.cluster.restore(backup)
        await moment(30)
        assert await world.holds(node.metadata.uid) == 4
        assert (await world.granted("n1")).status == "True"


async def a_node_back_whose_addresses_are_gone(world: World) -> str:
    """The uid of a Node that is back, with the status it had, when another cluster has all that there is."""
    world.replica().start()
    node = await world.add_node("n1")
    await moment()
    await world.ask("n1", 4)
    await moment(30)
    backup = world.cluster.snapshot()
    await world.remove_node("n1")
    await moment(400)
    assert (await world.subnet()).quarantined == 0
    await world.reserve((await world.subnet()).capacity)
    world.cluster.restore(backup)
    return node.metadata.uid


async def test_what_a_node_that_is_back_had_is_not_shown_when_there_is_none_for_it() -> None:
    async with a_world("10.1.0.0/28") as world:
        uid = await a_node_back_whose_addresses_are_gone(world)
        assert len(await world.names("n1")) == 4
        await moment(10)
        assert (await world.config("n1")).status.network_containers == []
        assert (await world.granted("n1")).reason == "SubnetFull"
        await world.reserve(2)
        await moment(200)
        assert (await world.holds(uid), len(await world.names("n1"))) == (4, 4)
        assert (await world.granted("n1")).status == "True"


async def test_what_a_node_that_is_back_had_is_not_shown_while_the_allocator_cannot_answer() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        backup = world.cluster.snapshot()
        await world.remove_node("n1")
        await moment(30)
        away = AllocatorUnavailable("away")
        world.allocator.faults = Script(put=[None, away, away, away])
        world.cluster.restore(backup)
        await moment(2)
        assert (await world.config("n1")).status.network_containers == []
        await moment(60)
        assert len(await world.names("n1")) == 4


async def doubt(world: World, mark: str) -> None:
    """Ask as the node's agent does."""
    config = await world.config("n1")
    place = ObjectMeta(
        name="n1",
        namespace=SYSTEM_NAMESPACE,
        uid=config.metadata.uid,
        annotations={DOUBT_ANNOTATION: mark},
    )
    await world.cluster.apply(NodeNetworkConfig(metadata=place, spec=config.spec), manager="agent")


async def test_a_doubt_is_answered_by_one_write_and_by_nothing_from_before() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        assert condition_of(await world.config("n1"), CONFIRMED) is None
        before = len(replica.cluster.work())
        await doubt(world, "first")
        await moment(30)
        assert replica.cluster.work()[before:] == ["status NodeNetworkConfig"]
        assert is_confirmed(await world.config("n1"), "first")
        await doubt(world, "second")
        assert not is_confirmed(await world.config("n1"), "second")
        await moment(30)
        assert is_confirmed(await world.config("n1"), "second")
        assert len(replica.cluster.work()) == before + 2


async def test_a_doubt_is_not_answered_before_the_allocator_has_spoken() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        world.allocator.faults = Script(put=[AllocatorUnavailable("away")] * 5)
        await doubt(world, "mark")
        await moment(1)
        assert not is_confirmed(await world.config("n1"), "mark")
        await moment(60)
        assert is_confirmed(await world.config("n1"), "mark")


async def test_a_config_that_is_of_before_the_backup_is_made_again() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1")
        backup = world.cluster.snapshot()
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        world.cluster.restore(backup)
        await moment(30)
        assert await world.holds(node.metadata.uid) == 4
        assert len(await world.names("n1")) == 4


async def test_a_node_that_is_of_after_the_backup_gives_everything_back() -> None:
    async with a_world() as world:
        world.replica().start()
        backup = world.cluster.snapshot()
        node = await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        world.cluster.restore(backup)
        await moment(30)
        assert await world.holds(node.metadata.uid) == -1
        assert (await world.subnet()).quarantined == 5


async def test_nothing_is_taken_anew_before_a_fresh_read_says_so() -> None:
    """A copy that is behind makes stale wishes too: those are made again, never taken anew."""
    async with a_world() as world:
        faults = Script()
        world.replica(faults=faults).start()
        await world.add_node("n1")
        await moment()
        faults.steps["event"] = [None, 5.0]
        await world.ask("n1", 3)
        world.allocator.faults = Script(put=[0.5, StaleWish("a newer wish was taken")])
        await moment(0.1)
        await world.ask("n1", 4)
        await moment(20)
        assert len(await world.names("n1")) == 4
        assert not any(wish.instead_of for wish in world.allocator.wishes)


async def test_of_two_containers_only_the_stale_one_is_taken_anew() -> None:
    async with a_world() as world:
        await world.add_subnet("fd00::/64", "pods-v6")
        options = ControllerOptions(cluster="east", network="blue", subnet="pods", subnet_v6="pods-v6")
        world.replica(options).start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment(30)
        world.allocator.faults = Script(put=[None, StaleWish("as after a restore")])
        await world.ask("n1", 5)
        await moment(5)
        taken = [wish.instead_of for wish in world.allocator.wishes[-3:]]
        assert taken[:2] == [None, None]
        assert isinstance(taken[2], LastWish)
        assert len(await world.names("n1", 1)) == 5
