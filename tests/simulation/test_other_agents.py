"""Agents that are not podtide's decide as Azure CNS does, and a run holds them to no more than they promise."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from msgspec import structs

from podtide.agent.request.sizing_policy import PoolSituation
from podtide.core.subnet.scaler import Scaler
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.faults.table import chosen_faults
from podtide.simulation.nodes.other_agents import POLICIES, sees_pods
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for
from podtide.simulation.run.settling import unsettled
from podtide.simulation.run.simulate import simulate
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.world import World

CALM = PoolSituation(demand=25, primaries=1, requested=31, held=31, assigned=25, releasing=0)


@pytest.mark.parametrize(("agent", "asked"), [("podtide", 47), ("cns-v1", 32), ("cns-v2", 48)])
def test_each_asks_for_what_it_would(agent: str, asked: int) -> None:
    assert POLICIES[agent].decide(CALM, Scaler()).request == asked


def test_only_the_first_version_of_cns_does_not_see_pods_that_wait() -> None:
    assert {name: sees_pods(policy) for name, policy in POLICIES.items()} == {
        "podtide": True,
        "cns-v1": False,
        "cns-v2": True,
    }


def test_those_of_cns_state_no_demand() -> None:
    assert [getattr(POLICIES[name], "states_demand", True) for name in ("cns-v1", "cns-v2")] == [False, False]


def small_plan(seed: int) -> FaultPlan:
    return fault_plan_for(seed, nodes=3, faults=chosen_faults("all"), trouble_seconds=45.0)


@pytest.mark.parametrize("seed", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_every_invariant_holds_among_agents_of_all_kinds(seed: int) -> None:
    plan = structs.replace(small_plan(seed), agents=tuple(POLICIES))
    report = simulate(plan)
    assert report.failure == ""
    assert report.trace_hash != simulate(structs.replace(plan, agents=())).trace_hash


def test_most_plans_have_podtides_agents_alone_and_some_have_others() -> None:
    drawn = [small_plan(seed).agents for seed in range(100)]
    assert 60 < drawn.count(()) < 95
    assert {len(agents) for agents in drawn if agents} == {3}
    assert {agent for agents in drawn for agent in agents} == set(POLICIES)


@asynccontextmanager
async def a_node_that_waits(agent: str) -> AsyncIterator[World]:
    """Its pods fit, and have no address: nobody grants any."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock)
    async with open_embedded_world("10.0.0.0/24", clock=clock, seed=1, log=log) as world:
        world.start_controller()
        await world.add_node("node-0", policy=POLICIES[agent])
        await world.workload.add_pods("node-0", 1)
        await world.until(lambda: world.running_pods() == 1, within=60)
        await world.programs.stop("controller")
        await world.workload.add_pods("node-0", 40)
        await world.pass_time(60)
        yield world


@pytest.mark.parametrize(("agent", "is_missed"), [("podtide", True), ("cns-v2", True), ("cns-v1", False)])
async def test_a_pod_that_its_agent_does_not_see_is_not_missed(agent: str, is_missed: bool) -> None:
    async with a_node_that_waits(agent) as world:
        complaints = await unsettled([world])
        assert any("pods that fit have an address" in each for each in complaints) is is_missed
