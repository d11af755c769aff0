"""Opens the clusters of a scenario: the production programs on virtual time, with the auditor."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from io import StringIO

from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.controller.options import ControllerOptions
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.scenario.document import Scenario
from podtide.simulation.scenario.stage import ClusterStage, HeldBackDeletes, ScenarioStage
from podtide.simulation.world.embedded_world import CLUSTER, NETWORK, opened_allocator
from podtide.simulation.world.site import Site
from podtide.simulation.world.slow_grants import SlowGrants
from podtide.simulation.world.world import PortWrappers, World, WorldDefaults

_AUDIT_EVERY_SECONDS = 0.25


@asynccontextmanager
async def open_stage(scenario: Scenario) -> AsyncIterator[ScenarioStage]:
    """Open the scenario's clusters, each with a controller and its first nodes."""
    clock = LoopClock()
    async with opened_allocator((), scenario.settings, clock) as allocator, AsyncExitStack() as stack:
        for name, cidr in scenario.subnets.items():
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=name, cidrs=(cidr,)))
        site = Site(allocator, NETWORK)
        clusters = {
            name: await stack.enter_async_context(_open_cluster(scenario, name, site, clock))
            for name in scenario.clusters
        }
        site.programs.start("auditor", site.auditor.run(_AUDIT_EVERY_SECONDS))
        for name, nodes in scenario.clusters.items():
            for node, subnet in nodes.items():
                await clusters[name].add_node(node, subnet)
        yield ScenarioStage(site, clusters, scenario.subnets)


@asynccontextmanager
async def _open_cluster(
    scenario: Scenario, name: str, site: Site, clock: LoopClock
) -> AsyncIterator[ClusterStage]:
    seed = full_name(name, scenario.title)
    log = make_logger(StringIO(), clock, level="error")
    cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{seed}/cluster"))
    deletes = HeldBackDeletes(AgentsInProcess(clock=clock, log=log))
    try:
        async with World(
            cluster,
            site.allocator,
            _options(scenario, name or CLUSTER),
            site=site,
            name=name,
            defaults=WorldDefaults(settings=scenario.settings, habits=scenario.habits),
            doors=deletes,
            clock=clock,
            seed=seed,
            log=log,
        ) as world:
            world.wrappers = PortWrappers(
                allocator=lambda _program, line: SlowGrants(line, scenario.grants_take_seconds)
            )
            stage = ClusterStage(world, cluster, deletes)
            stage.start_controller()
            yield stage
    finally:
        cluster.close()


def _options(scenario: Scenario, cluster: str) -> ControllerOptions:
    return ControllerOptions(
        cluster=cluster,
        network=NETWORK,
        subnet=next(iter(scenario.subnets)),
        cluster_subnets=scenario.cluster_subnets,
    )
