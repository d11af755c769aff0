"""Several replicas: one acts, and one that lost its lease has stopped before another starts."""

import asyncio

from cluster.candidates import OwnClock
from cluster.faulty_cluster import Script
from controller.world import Replica, World, a_world, moment
from podtide.cluster.port import Unavailable
from podtide.core.errors import StopError
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE


async def holder(world: World) -> str:
    lease = await world.cluster.get(Lease, "podtide-controller", SYSTEM_NAMESPACE)
    return lease.spec.holder_identity


def acted(replica: Replica) -> int:
    return len(replica.cluster.work())


async def test_of_two_replicas_only_the_leader_acts() -> None:
    async with a_world() as world:
        await world.ship_lease()
        first, second = world.replica(name="a"), world.replica(name="b")
        first.start(elected=True)
        await moment()
        second.start(elected=True)
        await world.add_node("n1")
        await moment(60)
        await world.ask("n1", 8)
        await moment(60)
        assert len(await world.names("n1")) == 8
        assert acted(first) > 0
        assert acted(second) == 0
        assert (second.cluster.calls["list"], second.cluster.open_watches) == (0, 0)
        assert (first.controller.metrics.leading, second.controller.metrics.leading) == (True, False)


async def test_a_leader_that_is_stopped_is_succeeded_at_once() -> None:
    async with a_world() as world:
        await world.ship_lease()
        first, second = world.replica(name="a"), world.replica(name="b")
        first.start(elected=True)
        await moment()
        second.start(elected=True)
        await world.add_node("n1")
        await moment()
        await first.stop()
        await world.ask("n1", 8)
        await moment(4)
        assert len(await world.names("n1")) == 8
        assert await holder(world) == "b"


async def test_a_leader_that_is_cut_off_has_stopped_before_the_next_one_starts() -> None:
    async with a_world() as world:
        await world.ship_lease()
        faults = Script()
        first, second = world.replica(name="a", faults=faults), world.replica(name="b")
        first.start(elected=True)
        await moment()
        second.start(elected=True)
        await world.add_node("n1")
        await moment()
        for call in ("get", "replace", "replace_status", "create"):
            faults.steps[call] = [Unavailable("cut off")] * 10_000
        stopped_at = started_at = 0.0
        for tick in range(400):
            await moment(0.1)
            if not first.controller.metrics.leading and not stopped_at:
                stopped_at = tick
            if second.controller.metrics.leading and not started_at:
                started_at = tick
        assert 0 < stopped_at < started_at
        written = acted(first)
        await world.ask("n1", 8)
        await moment()
        assert len(await world.names("n1")) == 8
        assert acted(first) == written


async def test_a_leader_that_was_asleep_writes_nothing_when_it_wakes_up() -> None:
    """It slept while it waited for the allocator; what it does next is the status it was about to write."""
    async with a_world() as world:
        await world.ship_lease()
        clock = OwnClock()
        first = world.replica(name="a", clock=clock)
        first.start(elected=True)
        await world.add_node("n1")
        await moment()
        written = acted(first)

        class Lullaby(Script):
            async def after(self, call: str) -> None:
                if call == "put":
                    clock.ahead_seconds += 60.0  # for this process a minute has passed without a step

        world.allocator.faults = Lullaby()
        await world.ask("n1", 8)
        await moment(0.01)
        assert world.allocator.wishes[-1].count == 8
        assert acted(first) == written
        assert await world.names("n1") == []


async def test_a_leader_that_was_asleep_asks_the_allocator_for_nothing_when_it_wakes_up() -> None:
    async with a_world() as world:
        await world.ship_lease()
        clock = OwnClock()
        first = world.replica(name="a", clock=clock)
        first.start(elected=True)
        node = await world.add_node("n1")
        await world.add_node("n2")
        await moment()
        puts = world.allocator.calls["put"]
        written = acted(first)
        clock.ahead_seconds += 60.0
        await world.ask("n2", 8)
        await world.remove_node("n1")
        await moment(0.01)
        assert world.allocator.calls["put"] == puts
        assert await world.holds(node.metadata.uid) == 0
        assert acted(first) == written


async def test_two_replicas_of_which_each_sleeps_now_and_then_leave_everything_in_order() -> None:
    async with a_world() as world:
        await world.ship_lease()
        clocks = OwnClock(), OwnClock()
        for name, clock in zip("ab", clocks, strict=True):
            world.replica(name=name, clock=clock).start(elected=True)
        nodes = [f"n{number}" for number in range(6)]
        for node in nodes:
            await world.add_node(node)
        await moment(30)
        for turn in range(1, 12):
            for node in nodes:
                await world.ask(node, turn)
            await moment(0.002 * turn)
            clocks[turn % 2].ahead_seconds += 40.0
            await moment(40)
            assert len(await world.everybody()) == len(nodes) * (turn + 1)
        assert {wish.id for wish in world.allocator.wishes} == {
            (await world.config(node)).metadata.owner_references[0].uid for node in nodes
        }


async def test_a_broken_invariant_stops_the_program() -> None:
    async with a_world() as world:
        replica = world.replica()
        running = replica.start()

        class Broken(Script):
            async def before(self, call: str) -> None:
                if call == "put":
                    raise StopError("one address is given to two nodes")

        world.allocator.faults = Broken()
        await world.add_node("n1")
        await asyncio.wait({running}, timeout=60)
        assert isinstance(running.exception(), StopError)


async def test_a_controller_can_be_cancelled_at_any_moment() -> None:
    async with a_world() as world:
        for delay in range(40):
            replica = world.replica(name=f"r{delay}")
            running = replica.start()
            await world.add_node(f"n{delay}")
            for _ in range(delay):
                await asyncio.sleep(0)
            await replica.stop()
            assert running.cancelled()
        world.replica().start()
        await moment(5)
        assert len(await world.everybody()) == 40
