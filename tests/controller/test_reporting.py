"""An allocator whose store went back is told what the nodes hold, and grants again when every cluster has told it."""

from msgspec import structs

from allocator.contract.test_recovering import as_held
from cluster.faulty_cluster import Script
from controller.test_leftovers import held, leave, run_pod
from controller.test_who_a_cluster_is import nodes_with_addresses
from controller.world import World, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store.script import Query
from podtide.allocator.store.script import Script as StoreScript
from podtide.allocator.terms import TermClaim
from podtide.resources.pod import PodPhase

ELSEWHERE = TermClaim(cluster="west", cluster_uid="uid-west", holder="west")


async def test_what_nodes_hold_is_reported_and_held_as_it_was() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 3)
        before = [await world.allocator.get_container(uid, cluster="east") for uid in uids]
        await world.allocator.begin_recovery("a test")
        await world.ask("n0", 5)  # while nothing is granted
        await moment(20.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        after = [await world.allocator.get_container(uid, cluster="east") for uid in uids]
        assert [each.addresses for each in after[1:]] == [each.addresses for each in before[1:]]
        assert set(before[0].addresses) < set(after[0].addresses)
        assert len(after[0].addresses) == 5
        for node in ("n0", "n1", "n2"):
            assert (await world.granted(node)).reason == "Complete"


async def test_nodes_are_reported_several_at_a_time() -> None:
    """Nothing is granted until the last one was: a failover of the database must not cost minutes in a large cluster."""
    async with a_world() as world:
        world.replica().start()
        await nodes_with_addresses(world, 20)
        world.allocator.faults = Script(adopt=[10.0] * 20)
        await world.allocator.begin_recovery("a test")
        await moment(30.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        assert world.allocator.calls["adopt"] >= 20


async def test_a_report_of_which_one_node_failed_is_made_again() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 5)
        world.allocator.faults = Script(adopt=[None, AllocatorUnavailable("away"), 3600.0])
        await world.allocator.begin_recovery("a test")
        await moment(60.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        assert [await world.holds(uid) for uid in uids] == [3] * 5


async def test_nodes_and_people_are_told_while_another_cluster_is_awaited() -> None:
    async with a_world() as world:
        await world.allocator.open_term(ELSEWHERE)
        replica = world.replica()
        replica.start()
        uids = await nodes_with_addresses(world, 2)
        await world.allocator.begin_recovery("a test")
        await moment(20.0)
        await world.ask("n0", 5)
        await world.remove_node("n1")
        await moment(60.0)
        granted = condition(await world.config("n0"), "Granted")
        assert (granted.status, granted.reason) == ("False", "AllocatorRecovering")
        assert "every cluster has reported" in granted.message
        assert [await world.holds(uid) for uid in uids] == [3, 3]  # and nobody is deleted, either
        registry = await world.allocator.list_clusters()
        assert registry.awaited == ("west",)
        writes = len(replica.cluster.work())
        await moment(600.0)
        assert len(replica.cluster.work()) - writes <= 2  # waiting is not writing
        number = (await world.allocator.open_term(ELSEWHERE)).recovery
        await world.allocator.finish_report("west", cluster_uid="uid-west", recovery=number)
        await moment(120.0)
        assert [await world.holds(uid) for uid in uids] == [5, -1]
        assert (await world.granted("n0")).reason == "Complete"


async def test_a_store_that_knows_less_than_the_cluster_has_seen_recovers_by_itself() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 2)
        before = await world.allocator.get_container(uids[0], cluster="east")
        await _go_back_to_before_the_first_node(world)
        await moment(30.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        assert (await world.allocator.get_container(uids[0], cluster="east")).addresses == before.addresses
        assert (await world.subnet()).reserved == 8
        await world.everybody()


async def test_a_store_that_forgot_the_cluster_recovers_however_far_it_has_come_since() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 2)
        before = await world.allocator.get_container(uids[0], cluster="east")
        await world.stop()
        await _go_back_to_before_the_first_node(world)
        await world.allocator._database.write(lambda _now: _come_to(1_000))
        await world.allocator.open_term(ELSEWHERE)
        world.replica().start()
        await moment(20.0)
        registry = await world.allocator.list_clusters()
        assert "and the store does not know it" in registry.recovering
        assert registry.awaited == ("west",)  # east has reported
        assert (await world.allocator.get_container(uids[0], cluster="east")).addresses == before.addresses
        await world.allocator.end_recovery()
        await moment(60.0)
        assert (await world.subnet()).reserved == 8
        await world.everybody()


def _come_to(sequence: int) -> StoreScript[None]:
    yield Query("UPDATE subnets SET sequence = $1", (sequence,))


async def _go_back_to_before_the_first_node(world: World) -> None:
    """What a backup of that day holds is the subnet, and nothing else."""
    database = world.allocator._database
    await world.allocator.forget_cluster("east")
    for table in ("resting", "quarantines", "containers", "grants", "chunks", "alike", "clusters"):
        await database.write(lambda _now, table=table: _empty(table))  # type: ignore[misc]  # of this round
    await database.write(lambda _now: _as_new())


def _empty(table: str) -> StoreScript[None]:
    yield Query(f"DELETE FROM {table}")  # noqa: S608 - one of ours


def _as_new() -> StoreScript[None]:
    yield Query(
        "UPDATE subnets SET reserved = 0, containers = 0, owed = 0, next_chunks = first_chunks, quarantined = 0, sequence = 0"
    )


async def test_a_node_that_went_before_the_store_went_back_is_retired_again() -> None:
    async with a_world() as world:
        world.replica().start()
        uids = await nodes_with_addresses(world, 2)
        held = await world.allocator.get_container(uids[0], cluster="east")
        await world.remove_node("n0")
        await moment(600.0)
        assert (await world.subnet()).reserved == 4
        # The store of a day on which the node was there.
        await world.allocator.begin_recovery("a test")
        await world.allocator._database.write(lambda _now: _raise_from_the_dead(uids[0]))
        number = (await world.allocator.open_term(await world.claim())).recovery
        assert await world.allocator.adopt_container(as_held(held, number)) == ()
        await moment(20.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        assert await world.holds(uids[0]) == -1
        assert (await world.subnet()).quarantined == 4


def _raise_from_the_dead(container: str) -> StoreScript[None]:
    yield Query("DELETE FROM containers WHERE id = $1", (container,))


async def test_what_a_node_named_for_release_is_not_reported_as_its_own() -> None:
    async with a_world() as world:
        await world.allocator.open_term(
            ELSEWHERE
        )  # which never reports, so that nothing is granted or released
        world.replica().start()
        uids = await nodes_with_addresses(world, 1)
        await world.allocator.begin_recovery("a test")
        names = await world.names("n0")
        await world.ask("n0", 2, release=names[:1])
        await moment(20.0)
        held = await world.allocator.get_container(uids[0], cluster="east")
        assert [each.name for each in held.addresses] == names[1:]
        assert (await world.subnet()).quarantined == 1


async def test_pods_that_outlived_a_node_whose_quarantine_was_lost_keep_their_addresses() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica().start()
        await nodes_with_addresses(world, 2)
        _primary, ip, *_others = await held(world, "n0")
        pod = await run_pod(world, ip, node="n0")
        (_primary, of_another, *_others) = await held(world, "n1")
        await run_pod(world, of_another, node="n1", name="p2")
        await leave(world, "n0")
        await _go_back_to_before_the_first_node(world)
        await moment(30.0)
        assert (await world.allocator.list_clusters()).recovering == ""
        await world.ask("n1", 12)  # all that the subnet has beside the node's own
        await moment(1000.0)
        assert ip not in await held(world, "n1")
        assert (await world.subnet()).quarantined == 1  # what n1's own pod shows is n1's
        ended = structs.replace(pod.status, phase=PodPhase.FAILED)
        await world.cluster.replace_status(structs.replace(pod, status=ended), manager="kubelet")
        await moment(1000.0)
        assert ip in await held(world, "n1")
        assert (await world.subnet()).quarantined == 0


async def test_what_a_node_named_for_release_is_kept_for_the_pod_of_a_removed_node_that_got_it_since() -> (
    None
):
    async with a_world("10.1.0.0/28") as world:
        await world.allocator.open_term(ELSEWHERE)
        world.replica().start()
        await nodes_with_addresses(world, 1)
        await world.allocator.begin_recovery("a test")
        names, (_primary, ip, *_others) = await world.names("n0"), await held(world, "n0")
        await run_pod(world, ip, node="gone")
        await world.ask("n0", 2, release=names[:1])
        await moment(20.0)
        await world.allocator.end_recovery()
        await moment(1000.0)
        await world.ask("n0", 12)  # all that the subnet has beside the node's own
        await moment(100.0)
        assert ip not in await held(world, "n0")
