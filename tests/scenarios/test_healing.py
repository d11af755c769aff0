"""What goes wrong around a node heals or is refused: nothing is given twice, and nothing that lives is released.

Every scenario here is audited four times a second; what its test adds is what had to come of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from io import StringIO

import pytest
from msgspec import structs

from burst_story import requests_of
from podtide.agent.program import NodeAgent
from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.interceptor import ClusterInterceptor, ListRequest
from podtide.cluster.port import Cluster, Conflict, NotFound, Page, R
from podtide.core.machine_identity import UNKNOWN_MACHINE
from podtide.core.pool.states import State
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.disk import Locked
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.simulation.world.recording import RecordingAllocator
from podtide.simulation.world.world import PortWrappers, World
from scenarios.looking import addresses_of_pods, config_of, count, granted, has_exactly, pool, subnet
from scenarios.stage import Stage

NODE = "node-0"

HELD = {10: 31, 30: 47, 40: 47}
"""What a node holds for so many pods: 16·⌈½ + U/16⌉ - 1."""


async def a_node_with_pods(world: World, pods: int) -> list[str]:
    """A node whose pods all have addresses, and that has all it wants."""
    await world.add_node(NODE)
    names = await world.workload.add_pods(NODE, pods)
    await has_all_for(world, pods)
    world.trace.mark()
    return names


async def has_all_for(world: World, pods: int) -> None:
    """Wait until so many pods have addresses, and the node all that it wants and nothing else."""
    await world.until(lambda: world.running_pods() == pods, within=60)
    await world.until(lambda: has_exactly(world, NODE, HELD[pods]), within=120)


async def insist(world: World, write: Callable[[NodeNetworkConfig], Awaitable[object]]) -> None:
    """Write the node's NodeNetworkConfig from outside, again where one of the programs was quicker."""
    while True:
        try:
            await write(await config_of(world, NODE))
        except Conflict:
            continue
        return


@pytest.mark.parametrize("edited", [0, 3, 200], ids=["to nothing", "to less than is used", "to far too much"])
async def test_an_edit_of_the_request_out_of_band_heals_in_one_write(stage: Stage, edited: int) -> None:
    async with stage.world("10.0.0.0/22") as world:
        await a_node_with_pods(world, 10)
        before = set(addresses_of_pods(world))

        def edit(config: NodeNetworkConfig) -> Awaitable[object]:
            spec = structs.replace(config.spec, requested_ip_count=edited)
            return world.cluster.replace(structs.replace(config, spec=spec), manager="kubectl-edit")

        await insist(world, edit)
        await world.until(lambda: bool(requests_of(world)), within=120)
        await has_all_for(world, 10)
        await world.pass_time(stage.seconds(120))
        assert await has_exactly(world, NODE, 31)
        assert set(addresses_of_pods(world)) == before
        assert set(requests_of(world)) == {31}


class LosesOneAnswer(RecordingAllocator):
    """Grants, and then the first answer does not arrive."""

    lost = 0

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        answer = await super().put_container(wish)
        if wish.count and not self.lost:
            self.lost += 1
            raise AllocatorUnavailable("the connection broke before the answer came")
        return answer


async def test_an_answer_of_the_allocator_that_is_lost_after_its_commit_costs_nothing(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24", controller=False) as world:
        losing = LosesOneAnswer(world.allocator, "controller", clock=world.clock, trace=world.trace)
        world.wrappers = PortWrappers(allocator=lambda _program, _line: losing)
        world.start_controller()
        await a_node_with_pods(world, 10)
        assert losing.lost == 1
        await world.pass_time(stage.seconds(60))
        assert await has_exactly(world, NODE, 31)
        assert (await subnet(world)).reserved == 1 + 31


async def test_a_status_replayed_from_an_older_version_brings_nothing_back(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24") as world:
        names = await a_node_with_pods(world, 30)
        older = await config_of(world, NODE)
        assert older.status.assigned_ip_count == 47
        for name in names[10:]:
            await world.workload.remove_pod(name)
        await has_all_for(world, 10)
        after = pool(world, NODE)

        def replay(config: NodeNetworkConfig) -> Awaitable[object]:
            replayed = structs.replace(config, status=older.status)
            return world.cluster.replace_status(replayed, manager="restore")

        await insist(world, replay)
        await world.until(lambda: is_granted(world, 31), within=60)
        await world.pass_time(stage.seconds(60))
        assert pool(world, NODE) == after
        assert await has_exactly(world, NODE, 31)
        assert world.running_pods() == 10


async def is_granted(world: World, addresses: int) -> bool:
    return await granted(world, NODE) == addresses


class PodsComeLate(ClusterInterceptor):
    """Pods cannot be listed before that event."""

    def __init__(self, inner: Cluster, until: asyncio.Event) -> None:
        super().__init__(inner)
        self._until = until

    async def intercept_list(self, request: ListRequest[R]) -> Page[R]:
        if request.kind is Pod:
            await self._until.wait()
        return await super().intercept_list(request)


@pytest.mark.parametrize("journal", [True, False], ids=["with its journal", "with its journal lost"])
async def test_an_agent_restarted_before_its_pods_are_listed_gives_nothing_away(
    stage: Stage, journal: bool
) -> None:
    async with stage.world("10.0.0.0/24") as world:
        await a_node_with_pods(world, 30)
        before = sorted(addresses_of_pods(world))
        await world.kill_agent(NODE)
        if not journal:
            world.lose_disk(NODE)
        listed = asyncio.Event()

        def late(_program: str, line: Cluster) -> Cluster:
            return PodsComeLate(line, listed)

        world.wrappers = PortWrappers(cluster=late)
        agent = await world.start_agent(NODE)
        await world.pass_time(stage.quiet_seconds)
        assert not agent.synced.is_set()
        assert requests_of(world) == ()
        assert await granted(world, NODE) == 47

        listed.set()
        await world.until(agent.synced.is_set, within=stage.within(10))
        await has_all_for(world, 30)
        await world.pass_time(stage.seconds(60))
        assert count(world, NODE, State.ASSIGNED) == 30
        assert await has_exactly(world, NODE, 47)
        await world.workload.add_pods(NODE, 5)
        await world.until(lambda: world.running_pods() == 35, within=60)
        assert set(before) < set(addresses_of_pods(world))


async def test_a_node_network_config_deleted_by_hand_is_made_again_around_the_same_container(
    stage: Stage,
) -> None:
    async with stage.world("10.0.0.0/24") as world:
        await a_node_with_pods(world, 10)
        before = await config_of(world, NODE)
        given = sorted(addresses_of_pods(world))
        await world.cluster.delete(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        await world.until(lambda: has_another_config(world, before), within=60)
        await world.workload.add_pods(NODE, 30)
        await has_all_for(world, 40)
        assert set(given) < set(addresses_of_pods(world))
        after = await config_of(world, NODE)
        assert [container.id for container in after.status.network_containers] == [world.machines[NODE].uid]
        assert after.status.network_containers[0].primary_ip == before.status.network_containers[0].primary_ip
        assert (await subnet(world)).reserved == 48


async def has_another_config(world: World, before: NodeNetworkConfig) -> bool:
    try:
        now = await config_of(world, NODE)
    except NotFound:
        return False
    return now.metadata.uid != before.metadata.uid and bool(now.status.network_containers)


async def test_a_node_recreated_under_its_name_starts_clean(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24") as world:
        await a_node_with_pods(world, 10)
        old = await config_of(world, NODE)
        (old_container,) = old.status.network_containers
        await world.remove_node(NODE)
        await world.add_node(NODE)
        await world.until(lambda: has_another_config(world, old), within=60)
        await world.workload.add_pods(NODE, 10)
        await has_all_for(world, 10)
        (new_container,) = (await config_of(world, NODE)).status.network_containers
        assert new_container.id == world.machines[NODE].uid != old_container.id
        # What the old one had is in quarantine: nobody has any of it yet.
        had = {old_container.primary_ip, *(address.ip for address in old_container.ip_assignments)}
        has = {new_container.primary_ip, *(address.ip for address in new_container.ip_assignments)}
        assert had.isdisjoint(has)
        assert (await subnet(world)).reserved == len(had) + len(has)


async def test_an_agent_that_finds_another_node_under_its_name_hands_out_nothing_of_the_old_ones(
    stage: Stage,
) -> None:
    async with stage.world("10.0.0.0/24") as world:
        names = await a_node_with_pods(world, 10)
        old = await config_of(world, NODE)
        (old_container,) = old.status.network_containers
        had = {address.ip for address in old_container.ip_assignments}
        for name in names:
            await world.workload.remove_pod(name)
        await world.until(lambda: world.running_pods() == 0, within=60)

        # The machine goes on as if nothing were: only the Node is another, and does not say which machine it is.
        world.machines[NODE].uid = ""
        await world.cluster.delete(Node, NODE)
        world.machines[NODE].uid = (await world.create_node(NODE, identity=UNKNOWN_MACHINE)).metadata.uid
        await world.until(lambda: had.isdisjoint(pool(world, NODE)), within=60)
        await world.workload.add_pods(NODE, 10)
        await has_all_for(world, 10)
        assert had.isdisjoint(addresses_of_pods(world))


async def test_a_second_agent_on_a_node_is_refused(stage: Stage) -> None:
    async with stage.world("10.0.0.0/24") as world:
        await a_node_with_pods(world, 10)
        machine = world.machines[NODE]
        with pytest.raises(Locked):
            NodeAgent(
                world.cluster,
                NODE,
                machine.disk,
                runtime=Runtime(
                    clock=world.clock,
                    randomness=seeded_randomness(2),
                    log=make_logger(StringIO(), world.clock),
                    settings=machine.settings,
                ),
            )
        await world.workload.add_pods(NODE, 5)
        await world.until(lambda: world.running_pods() == 15, within=60)
