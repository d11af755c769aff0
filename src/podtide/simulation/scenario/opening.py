"""Makes the cluster of a scenario: the production programs on virtual time, with the auditor at work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO

from podtide.allocator.port import Allocator, SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.controller.options import ControllerOptions
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.agents_in_process import AgentsInProcess
from podtide.simulation.embedded_world import CLUSTER, NETWORK, opened_allocator
from podtide.simulation.scenario.document import Scenario
from podtide.simulation.scenario.stage import CONTROLLER, HeldBackDeletes, ScenarioStage
from podtide.simulation.slow_grants import SlowGrants
from podtide.simulation.trace import Trace
from podtide.simulation.world import Between, Customs, World

_AUDIT_EVERY_SECONDS = 0.25


@asynccontextmanager
async def open_stage(scenario: Scenario) -> AsyncIterator[ScenarioStage]:
    """The scenario's cluster before its story begins: a controller, and the nodes that are there from the start."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{scenario.title}/cluster"))
    deletes = HeldBackDeletes(AgentsInProcess(clock=clock, log=log))
    try:
        async with opened_allocator((), scenario.settings, clock) as allocator:
            for name, cidr in scenario.subnets.items():
                await allocator.add_subnet(SubnetSpec(network=NETWORK, name=name, cidrs=(cidr,)))
            async with World(
                cluster,
                allocator,
                _options(scenario),
                customs=Customs(settings=scenario.settings, habits=scenario.habits),
                doors=deletes,
                clock=clock,
                seed=scenario.title,
                log=log,
            ) as world:
                slow = partial(_slowed, seconds=scenario.grants_take_seconds, clock=clock)
                world.between = Between(allocator=slow)
                stage = ScenarioStage(world, cluster, deletes)
                world.start_controller(CONTROLLER)
                world.programs.start("auditor", world.auditor.run(_AUDIT_EVERY_SECONDS))
                for name, subnet in scenario.nodes.items():
                    await stage.add_node(name, subnet)
                yield stage
    finally:
        cluster.close()


def _options(scenario: Scenario) -> ControllerOptions:
    return ControllerOptions(
        cluster=CLUSTER,
        network=NETWORK,
        subnet=next(iter(scenario.subnets)),
        cluster_subnets=scenario.cluster_subnets,
    )


def _slowed(program: str, line: Allocator, *, seconds: float, clock: LoopClock) -> Allocator:
    return SlowGrants(line, program, seconds, clock=clock, trace=Trace())
