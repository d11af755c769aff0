"""The world as such: its programs can be ended and started, and what is waited for is not waited for in vain."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest

from podtide.core.pool.states import State
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.world import WaitTimeout, World

NODE = "node-0"


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    clock = LoopClock()
    log = make_logger(StringIO(), clock)
    async with open_embedded_world("10.0.0.0/24", clock=clock, seed=1, log=log) as world:
        yield world


@asynccontextmanager
async def a_node(pods: int) -> AsyncIterator[World]:
    async with a_world() as world:
        world.start_controller()
        await world.add_node(NODE)
        await world.workload.add_pods(NODE, pods)
        await world.until(lambda: world.running_pods() == pods, within=60)
        yield world


async def test_what_does_not_come_to_pass_is_too_late_and_says_how_things_are() -> None:
    async with a_node(1) as world:
        with pytest.raises(WaitTimeout, match="node-0"):
            await world.until(lambda: False, within=60)


async def test_pods_that_come_and_go_while_the_agent_is_away_are_served_when_it_is_back() -> None:
    async with a_node(3) as world:
        await world.kill_agent(NODE)
        await world.workload.remove_pod("pod-0")
        await world.workload.add_pods(NODE, 1)
        await world.pass_time(5)
        assert [call.ok for call in world.trace.plugin_calls("DEL")][:1] == [True]
        (refused,) = world.trace.plugin_calls("ADD", ok=False)
        assert "code 11" in refused.words

        agent = await world.start_agent(NODE)
        await world.until(lambda: world.running_pods() == 3, within=60)
        assigned = [a for a in agent.addresses.all_addresses() if a.state is State.ASSIGNED]
        assert len(assigned) == 3
        await world.auditor.check()


async def test_an_add_that_waits_when_the_agent_dies_fails_and_is_tried_again() -> None:
    async with a_node(1) as world:
        await world.programs.stop("controller")
        await world.workload.add_pods(NODE, 20)
        await world.pass_time(1)
        await world.kill_agent(NODE)
        await world.pass_time(1)
        assert len(world.trace.plugin_calls("ADD", ok=False)) == 6
        world.start_controller()
        await world.start_agent(NODE)
        await world.until(lambda: world.running_pods() == 21, within=60)
        await world.auditor.check()


@pytest.mark.parametrize(("killed", "holder"), [(True, "controller"), (False, "")])
async def test_a_killed_controller_keeps_its_lease_and_a_stopped_one_gives_it_up(
    killed: bool, holder: str
) -> None:
    async with a_world() as world:
        world.start_controller(elected=True)
        await world.pass_time(60)
        await (world.programs.kill("controller") if killed else world.programs.stop("controller"))
        lease = await world.cluster.get(Lease, "podtide-controller", SYSTEM_NAMESPACE)
        assert (lease.spec.holder_identity or "") == holder


async def test_a_machine_that_lost_power_gives_its_pods_new_sandboxes_with_addresses() -> None:
    async with a_node(10) as world:
        await world.crash_machine(NODE)
        assert world.running_pods() == 0
        await world.until(lambda: world.running_pods() == 10, within=60)
        await world.pass_time(1200)
        await world.auditor.check()
        agent = world.machines[NODE].agent
        assert agent is not None
        assigned = [a for a in agent.addresses.all_addresses() if a.state is State.ASSIGNED]
        assert len(assigned) == 10


async def test_the_same_seed_gives_the_same_story() -> None:
    stories = []
    for _ in range(2):
        async with a_node(20) as world:
            stories.append([str(entry) for entry in world.trace.entries])
    assert stories[0] == stories[1]
