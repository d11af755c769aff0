"""What is in force for a subnet, who is told, and how seldom anything is written."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, a_world, condition, crowd, in_force, moment, override
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.subnets import Bounds
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import R, Unavailable
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.metadata_keys import NAME_LABEL, PODTIDE, SYSTEM_NAMESPACE
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness


async def test_a_subnet_in_use_has_its_two_objects_from_the_start() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        status = (await world.cluster_subnet()).status
        assert (status.cidr, status.capacity, status.reserved) == ("10.1.0.0/24", 253, 0)
        assert (status.exhausted, status.starved) == (False, False)
        assert await in_force(world) == (16, 0.5)
        accepted = condition(await world.cluster_subnet(), "OverrideAccepted")
        assert (accepted.status, accepted.reason) == ("True", "NoOverride")
        state = (await world.cluster_subnet_state()).status
        assert state is not None
        assert (state.exhausted, state.timestamp) == (False, "2025-06-15T15:06:40Z")


async def test_both_objects_have_the_label_by_which_podtide_knows_what_it_made() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        for made in (await world.cluster_subnet(), await world.cluster_subnet_state()):
            assert made.metadata.labels == {NAME_LABEL: PODTIDE}


async def test_all_ranges_of_a_subnet_are_shown_beside_the_capacity_of_all() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        assert (await world.cluster_subnet()).status.ranges == "10.1.0.0/24"
        await world.allocator.grow_subnet("blue", "pods", ("10.9.0.0/28",))
        await moment(6)
        status = (await world.cluster_subnet()).status
        assert (status.ranges, status.capacity) == ("10.1.0.0/24,10.9.0.0/28", 253 + 13)


async def test_exhaustion_turns_on_and_off_and_does_not_flap_between_the_thresholds() -> None:
    async with a_world() as world:  # 253 addresses: on over 227.7, off under 202.4
        world.replica().start()
        await moment()
        shown: list[bool] = []
        for reserved in (227, 228, 227, 203, 227, 203, 202, 203, 227):
            await world.reserve(reserved)
            await moment(6)
            state = (await world.cluster_subnet_state()).status
            assert state is not None
            assert (await world.cluster_subnet()).status.exhausted == state.exhausted
            shown.append(state.exhausted)
        assert shown == [False, True, True, True, True, True, False, False, False]
        assert await world.events(await world.cluster_subnet()) == ["Exhausted", "Recovered"]


async def test_an_idle_cluster_writes_nothing() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        for name in ("n1", "n2", "n3"):
            await world.add_node(name)
        await moment()
        for name in ("n1", "n2", "n3"):
            await world.ask(name, 15)
        await moment(120)
        replica.cluster.writes.clear()
        world.allocator.calls.clear()
        await moment(600)
        assert replica.cluster.writes == []
        assert set(world.allocator.calls) == {"demand"}
        assert world.allocator.calls["demand"] == pytest.approx(120, abs=2)


async def test_what_an_older_crd_drops_is_not_written_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Helm leaves CRDs as they are: after an upgrade the API server does not know the newest fields."""
    async with a_world() as world:
        replica = world.replica()
        replace_status = replica.cluster.replace_status

        async def drop_thresholds(resource: R, *, manager: str) -> R:
            if isinstance(resource, ClusterSubnet):
                kept = structs.replace(resource.status, thresholds=None)
                resource = structs.replace(resource, status=kept)
            return await replace_status(resource, manager=manager)

        monkeypatch.setattr(replica.cluster, "replace_status", drop_thresholds)
        replica.start()
        await world.reserve(100)
        await moment(120)
        replica.cluster.writes.clear()
        await moment(600)
        assert replica.cluster.writes == []
        await world.reserve(200)
        await moment(60)
        assert (await world.cluster_subnet()).status.reserved == 200


async def test_a_reserved_count_that_wavers_is_written_seldom_and_only_when_it_moved_far() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.reserve(100)
        await moment(120)
        written = (await world.cluster_subnet()).status.reserved
        replica.cluster.writes.clear()
        for step in range(60):
            await world.reserve(100 + step % 2)
            await moment(10)
        assert replica.cluster.writes == []
        for step in range(60):
            await world.reserve(100 + 10 * (step % 2))
            await moment(10)
        assert 2 <= len(replica.cluster.writes) <= 21
        assert written == 100


async def test_sixty_two_addresses_that_nodes_hold_are_never_shown_as_none_however_large_the_subnet() -> None:
    async with a_world("10.0.0.0/8") as world:
        world.replica().start()
        await moment()
        await world.reserve(62)
        await moment(6)
        assert (await world.cluster_subnet()).status.reserved == 62


async def test_what_is_reserved_is_shown_exactly_once_it_rests_and_then_nothing_is_written() -> None:
    async with a_world("10.0.0.0/8") as world:
        replica = world.replica()
        replica.start()
        await world.reserve(100)
        await moment(60)
        replica.cluster.writes.clear()
        await world.reserve(101)
        await moment(20)
        assert replica.cluster.writes == []
        await moment(20)
        assert (await world.cluster_subnet()).status.reserved == 101
        await moment(600)
        assert replica.cluster.writes == ["status ClusterSubnet"]


async def test_an_override_is_in_force_at_once() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        await override(world, batch=32, buffer=0.25)
        await moment()
        assert await in_force(world) == (32, 0.25)
        accepted = condition(await world.cluster_subnet(), "OverrideAccepted")
        assert (accepted.status, accepted.reason, accepted.observed_generation) == ("True", "Accepted", 2)
        await override(world, batch=8)
        await moment()
        assert await in_force(world) == (8, 0.5)


@pytest.mark.parametrize(("bad", "why"), [({"batch": 300}, "batch 300"), ({"buffer": 1e6}, "16000000")])
async def test_a_bad_override_is_refused_in_a_condition_and_the_old_value_stays(
    bad: dict[str, Any], why: str
) -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        await override(world, batch=32)
        await moment()
        await override(world, **bad)
        await moment()
        refused = condition(await world.cluster_subnet(), "OverrideAccepted")
        assert (refused.status, refused.reason) == ("False", "Refused")
        assert why in refused.message
        assert "250" in refused.message
        assert await in_force(world) == (32, 0.5)
        await replica.stop()
        world.replica().start()
        await moment()
        assert await in_force(world) == (32, 0.5)
        await override(world)
        await moment()
        assert await in_force(world) == (16, 0.5)
        assert condition(await world.cluster_subnet(), "OverrideAccepted").reason == "NoOverride"


async def test_objects_that_somebody_deletes_are_made_again() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.reserve(240)
        await moment(6)
        await world.cluster.delete(ClusterSubnet, "pods", SYSTEM_NAMESPACE)
        await world.cluster.delete(ClusterSubnetState, "pods", SYSTEM_NAMESPACE)
        await moment()
        assert (await world.cluster_subnet()).status.exhausted
        state = (await world.cluster_subnet_state()).status
        assert state is not None
        assert state.exhausted


async def test_a_state_that_somebody_edits_is_put_right() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        state = await world.cluster_subnet_state()
        assert state.status is not None
        lie = structs.replace(state.status, exhausted=True)
        await world.cluster.replace_status(structs.replace(state, status=lie), manager="kubectl")
        await moment()
        status = (await world.cluster_subnet_state()).status
        assert status is not None
        assert not status.exhausted


@pytest.mark.parametrize("cluster_subnets", [True, False])
async def test_a_restart_between_the_thresholds_forgets_no_exhaustion(*, cluster_subnets: bool) -> None:
    options = structs.replace(OPTIONS, cluster_subnets=cluster_subnets)
    async with a_world() as world:
        first = world.replica(options)
        first.start()
        await world.add_node("n1")
        await moment()
        for reserved, exhausted in ((240, True), (215, True), (150, False), (210, False)):
            await world.reserve(reserved)
            await moment(6)
            await first.stop()
            first = world.replica(options)
            first.start()
            await moment()
            state = (await world.cluster_subnet_state()).status
            assert state is not None
            assert state.exhausted is exhausted
            assert first.cluster.work() == []


async def test_where_agents_know_no_cluster_subnet_the_batch_reaches_them_by_their_configs() -> None:
    async with a_world() as world:
        replica = world.replica(structs.replace(OPTIONS, cluster_subnets=False))
        replica.start()
        names = await crowd(world)
        for name in names:
            scaler = (await world.config(name)).status.scaler
            assert (scaler.batch_size, scaler.request_threshold_percent) == (8, 50)
            assert scaler.release_threshold_percent == 150
        assert await world.find(ClusterSubnet, "pods") is None
        state = await world.cluster_subnet_state()
        assert state.status is not None
        assert state.status.exhausted
        assert sorted(await world.events(state)) == ["BatchReduced", "Exhausted"]
        for name in names:
            await world.state(name, 15, batch=8, top=0)
        await moment(70)
        replica.cluster.writes.clear()
        await moment(120)
        assert replica.cluster.writes == []


async def test_without_cluster_subnets_a_new_batch_is_told_at_a_pace() -> None:
    async with a_world("10.1.0.0/20") as world:
        replica = world.replica(structs.replace(OPTIONS, cluster_subnets=False))
        replica.start()
        for number in range(200):
            await world.add_node(f"n{number}")
        await moment(10)
        replica.cluster.writes.clear()
        frugal = Bounds(batch=8, buffer="0.5", lower="0.8", upper="0.9")
        await world.allocator.set_bounds("blue", "pods", cluster="west", bounds=frugal)
        await world.foreign_node("w1", 0)  # from now on what the other cluster asks for counts
        told = [0]
        for _ in range(100):
            await moment(0.1)
            told.append(len(replica.cluster.about("NodeNetworkConfig")))
        assert told[-1] == 200
        assert max(after - before for before, after in pairwise(told)) <= 11, "100 in a second"


async def test_without_cluster_subnets_those_left_over_are_made_to_say_nothing() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        await moment()
        await override(world, fixed=4)
        await moment()
        await first.stop()
        world.replica(structs.replace(OPTIONS, cluster_subnets=False)).start()
        await moment(6)
        left = await world.cluster_subnet()
        assert left.status.scaler is None
        assert left.status.conditions == []
        assert left.spec.scaler.fixed == 4, "what a person wrote stays"
        await world.add_node("n1")
        await moment(6)
        assert (await world.config("n1")).status.scaler.batch_size == 16, "and counts for nothing"


async def test_a_cluster_that_knows_no_cluster_subnet_can_be_run_without() -> None:
    async with a_world() as world:
        kinds = [kind for kind in ALL_KINDS if kind is not ClusterSubnet]
        world.cluster = EmbeddedCluster(kinds=kinds, clock=LoopClock(), randomness=seeded_randomness(1))
        world.replica(structs.replace(OPTIONS, cluster_subnets=False)).start()
        await world.add_node("n1")
        await moment()
        assert (await world.granted("n1")).status == "True"


async def test_a_new_batch_alone_is_no_write_per_node_where_agents_have_it_from_the_cluster_subnet() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await crowd(world)
        assert (await world.config("n1")).status.scaler.batch_size == 16
        await world.ask("n1", 14)
        await moment()
        assert (await world.config("n1")).status.scaler.batch_size == 8


async def test_subnets_that_labels_name_are_looked_at_as_long_as_a_node_uses_them() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_subnet("10.2.0.0/24", "other")
        await world.add_node("n1", {"podtide.io/subnet": "other"})
        await moment()
        assert (await in_force(world, "other")) == (16, 0.5)
        assert (await world.config("n1")).status.network_containers[0].subnet_name == "other"
        assert set(replica.controller.metrics.subnets) == {"pods", "other"}
        await world.remove_node("n1")
        await moment(10)
        assert set(replica.controller.metrics.subnets) == {"pods"}


async def test_the_state_of_one_subnet_says_nothing_of_another() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_subnet("10.2.0.0/24", "other")
        await world.add_node("n1", {"podtide.io/subnet": "other"})
        await world.reserve(240)
        await moment(6)
        assert (await world.cluster_subnet("pods")).status.exhausted
        assert not (await world.cluster_subnet("other")).status.exhausted


async def test_a_transition_whose_write_was_lost_is_made_again_with_its_event() -> None:
    async with a_world() as world:
        faults = Script()
        world.replica(faults=faults).start()
        await moment()
        faults.steps["replace_status"] = [None, Unavailable("away"), Unavailable("away")]
        await world.reserve(240)
        await moment(30)
        assert (await world.cluster_subnet()).status.exhausted
        assert await world.events(await world.cluster_subnet()) == ["Exhausted"]


async def test_an_allocator_that_is_away_leaves_everything_in_force() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.reserve(240)
        await moment(6)
        replica.cluster.writes.clear()
        before = (await world.cluster_subnet()).status
        world.allocator.faults = Script(demand=[AllocatorUnavailable("away")] * 5)
        await moment(16)
        away = (await world.cluster_subnet()).status
        assert structs.replace(away, conditions=before.conditions) == before
        await moment(60)
        assert replica.cluster.writes == ["status ClusterSubnet"] * 2  # that it is away, and that it is back
        assert (await world.cluster_subnet()).status.exhausted


async def test_counts_show_what_was_read_and_decided() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        await world.state("n1", 14)
        await moment()
        counts = replica.controller.metrics
        subnet = counts.subnets["pods"]
        assert (subnet.capacity, subnet.reserved, subnet.containers, subnet.owed) == (13, 13, 1, 19)
        assert (subnet.exhausted, subnet.starved, subnet.batch, subnet.buffer) == (
            True,
            False,
            2,
            Fraction(1, 2),
        )
        assert (subnet.top, subnet.unanswered) == (16, 1)
        assert (counts.leading, counts.owed_nodes) == (True, 1)
        assert counts.allocator_calls["put_container", "ok"] == world.allocator.calls["put"]
        assert counts.writes["NodeNetworkConfig/status"] == 2
        await replica.stop()
        assert not counts.leading
