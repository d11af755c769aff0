"""An allocator that does not answer: who asked is told within seconds, nobody writes more than once, and it ends at once."""

import asyncio

import pytest

from cluster.faulty_cluster import Script
from controller.world import World, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.controller.allocator_outage import ANSWER_SECONDS, RETRY_SECONDS
from podtide.controller.options import ControllerOptions
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.settings import Settings

FOR_EVER = 1_000_000.0
A_WHILE = ANSWER_SECONDS + 1.0
UNTIL_KNOWN = 3 * (ANSWER_SECONDS + RETRY_SECONDS)
"""Three looks in a row without an answer."""


class Dead:
    """Every call fails, or is never answered, until the allocator is back."""

    def __init__(self, *, hangs: bool = True) -> None:
        self.is_back = asyncio.Event()
        self._hangs = hangs

    async def before(self, call: str) -> None:
        del call
        if self.is_back.is_set():
            return
        if self._hangs:
            await asyncio.sleep(FOR_EVER)
        raise AllocatorUnavailable("connection refused")

    async def after(self, call: str) -> None:
        pass


async def is_refused(world: World, node: str) -> bool:
    """Whether the node's present request is told that the allocator is away."""
    config = await world.config(node)
    granted = condition(config, "Granted")
    return (granted.status, granted.reason, granted.observed_generation) == (
        "False",
        "AllocatorUnavailable",
        config.metadata.generation,
    )


@pytest.mark.parametrize("hangs", [True, False], ids=["it hangs", "it refuses connections"])
async def test_a_request_that_a_dead_allocator_cannot_grant_is_told_so_within_seconds(hangs: bool) -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        assert (await world.granted("n1")).status == "True"
        world.allocator.faults = Dead(hangs=hangs)
        await world.ask("n1", 15)
        await moment(A_WHILE)
        assert await is_refused(world, "n1")
        assert await world.events(await world.config("n1")) == ["AllocatorUnavailable"]


async def test_a_request_made_while_an_earlier_one_hangs_is_told_so_as_well() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        world.allocator.faults = Dead()
        await world.ask("n1", 15)
        await moment(ANSWER_SECONDS - 1)
        await world.ask("n1", 31)
        await moment(2 * ANSWER_SECONDS)
        assert await is_refused(world, "n1")


async def test_a_hundred_requests_do_not_queue_behind_calls_that_a_dead_allocator_never_answers() -> None:
    async with a_world("10.1.0.0/16") as world:
        world.replica().start()
        nodes = [f"n{number}" for number in range(100)]
        for name in nodes:
            await world.add_node(name)
        await moment(5)
        world.allocator.faults = Dead()
        for name in nodes:
            await world.ask(name, 15)
        await moment(2 * ANSWER_SECONDS)
        assert [name for name in nodes if not await is_refused(world, name)] == []


async def test_an_hour_without_an_allocator_costs_one_write_for_each_request_and_one_for_the_subnet() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        for name in ("n1", "n2"):
            await world.add_node(name)
        await moment(40)
        world.allocator.faults = Dead(hangs=False)
        replica.cluster.writes.clear()
        world.allocator.calls.clear()
        await world.ask("n1", 15)
        await moment(1800)
        await world.ask("n1", 31)
        await moment(1800)
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"] * 2
        assert replica.cluster.about("ClusterSubnet") == ["status ClusterSubnet"]
        assert world.allocator.calls["put"] <= 3
        assert world.allocator.calls["demand"] <= 3600 / RETRY_SECONDS + 1


@pytest.mark.parametrize("poll", ["5s", "10m"])
async def test_when_the_allocator_is_back_what_was_asked_for_is_granted_at_the_next_look(poll: str) -> None:
    async with a_world() as world:
        world.replica(settings=Settings(poll_seconds=5.0 if poll == "5s" else 600.0)).start()
        for name in ("n1", "n2"):
            await world.add_node(name)
        await moment()
        dead = Dead(hangs=False)
        world.allocator.faults = dead
        for name in ("n1", "n2"):
            await world.ask(name, 15)
        await moment(3600)
        dead.is_back.set()
        await moment(RETRY_SECONDS + 1)
        for name in ("n1", "n2"):
            assert len(await world.names(name)) == 15
            assert (await world.granted(name)).reason == "Complete"


async def test_the_cluster_subnet_tells_that_the_allocator_is_away_and_that_it_is_back() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        assert not [each for each in (await world.cluster_subnet()).status.conditions if "Reach" in each.type]
        dead = Dead()
        world.allocator.faults = dead
        await moment(UNTIL_KNOWN)
        away = condition(await world.cluster_subnet(), "AllocatorReachable")
        assert (away.status, away.reason) == ("False", "AllocatorUnavailable")
        assert away.message.startswith("cannot read subnet pods: the allocator gave no answer within 10 s")
        dead.is_back.set()
        await moment(ANSWER_SECONDS + RETRY_SECONDS)
        assert condition(await world.cluster_subnet(), "AllocatorReachable").status == "True"


async def test_without_cluster_subnets_nothing_is_written_about_an_outage() -> None:
    async with a_world() as world:
        options = ControllerOptions(cluster="east", network="blue", subnet="pods", cluster_subnets=False)
        replica = world.replica(options)
        replica.start()
        await moment()
        replica.cluster.writes.clear()
        world.allocator.faults = Dead()
        await moment(600)
        assert replica.cluster.writes == []


async def test_one_lost_answer_is_no_outage_for_others() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        for name in ("n1", "n2"):
            await world.add_node(name)
        await moment()
        world.allocator.faults = Script(put=[AllocatorUnavailable("lost")] * 2)
        replica.cluster.writes.clear()
        await world.ask("n1", 15)
        await moment(0.2)
        await world.ask("n2", 15)
        await moment(30)
        configs = (await world.cluster.list(NodeNetworkConfig)).items
        assert [condition(config, "Granted").reason for config in configs] == ["Complete"] * 2
        assert replica.cluster.about("ClusterSubnet") in ([], ["status ClusterSubnet"])  # what is reserved


async def test_an_allocator_that_takes_several_seconds_is_waited_for_and_is_no_outage() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        world.allocator.faults = Script(put=[ANSWER_SECONDS - 1])
        replica.cluster.writes.clear()
        await world.ask("n1", 15)
        await moment(ANSWER_SECONDS)
        assert len(await world.names("n1")) == 15
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"]


async def test_the_leader_is_not_ready_and_tells_so_until_the_allocator_answers() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        controller = replica.controller
        assert (controller.unreadiness, controller.metrics.allocator_reachable) == ("", None)
        await moment()
        assert (controller.unreadiness, controller.metrics.allocator_reachable) == ("", True)
        dead = Dead()
        world.allocator.faults = dead
        await moment(UNTIL_KNOWN)
        assert controller.unreadiness == (
            "the allocator does not answer, and is tried again every few seconds: "
            "cannot read subnet pods: the allocator gave no answer within 10 s"
        )
        assert controller.metrics.allocator_reachable is False
        dead.is_back.set()
        await moment(ANSWER_SECONDS + RETRY_SECONDS)
        assert (controller.unreadiness, controller.metrics.allocator_reachable) == ("", True)


async def test_one_lost_answer_leaves_the_leader_ready() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        controller = replica.controller
        await moment()
        world.allocator.faults = Script(demand=[AllocatorUnavailable("lost")] * 2)
        for _ in range(30):
            await moment()
            assert (controller.unreadiness, controller.metrics.allocator_reachable) == ("", True)
        assert controller.metrics.allocator_calls["demand", "AllocatorUnavailable"] == 2


async def test_standbys_are_ready_whatever_becomes_of_the_allocator_and_so_is_a_leader_that_was() -> None:
    async with a_world() as world:
        await world.ship_lease()
        first, second = world.replica(name="a"), world.replica(name="b")
        controllers = [first.controller, second.controller]
        first.start(elected=True)
        await moment()
        second.start(elected=True)
        world.allocator.faults = Dead(hangs=False)
        await moment(UNTIL_KNOWN)
        assert [bool(each.unreadiness) for each in controllers] == [True, False]
        await first.stop()
        await moment(UNTIL_KNOWN)
        assert [bool(each.unreadiness) for each in controllers] == [False, True]
        assert controllers[0].metrics.allocator_reachable is None


async def test_calls_are_counted_by_what_became_of_them() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        controller = replica.controller
        await world.add_node("n1")
        await world.add_node("n2", {"podtide.io/subnet": "elsewhere"})
        await moment()
        calls = controller.metrics.allocator_calls
        assert calls["put_container", "ok"] == 1
        assert calls["put_container", "NoSuchSubnet"] >= 1
        assert calls["open_term", "ok"] >= 1
        world.allocator.faults = Dead()
        await moment(UNTIL_KNOWN)
        assert calls["demand", "abandoned"] >= 3
