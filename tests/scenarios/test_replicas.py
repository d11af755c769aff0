"""Two replicas of the controller: one acts, and when it goes in the middle of things the other takes over."""

import pytest

from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.trace import AllocatorCall, ClusterWrite
from podtide.simulation.world.world import World
from scenarios.stage import Stage


def acting(world: World) -> list[str]:
    """Which controllers acted on nodes since the mark, each as often as it took over from the other."""
    actors: list[str] = []
    for entry in world.trace.since_mark():
        acts = isinstance(entry, AllocatorCall) or (
            isinstance(entry, ClusterWrite)
            and entry.kind == NodeNetworkConfig.api.kind
            and entry.program.startswith("controller")
        )
        if acts and actors[-1:] != [entry.program]:  # type: ignore[union-attr]  # both kinds that act have a program
            actors.append(entry.program)  # type: ignore[union-attr]  # as above
    return actors


@pytest.mark.parametrize("dies", [True, False], ids=["the leader dies", "the leader is stopped"])
async def test_a_leader_that_goes_in_the_middle_of_a_burst_is_succeeded(stage: Stage, dies: bool) -> None:
    async with stage.world("10.0.0.0/22", controller=False) as world:
        for name in ("controller a", "controller b"):
            world.start_controller(name, elected=True)
        for number in range(5):
            await world.add_node(f"node-{number}")
        await world.workload.add_pods("node-0", 1)
        await world.until(lambda: world.running_pods() == 1, within=60)
        (leader,) = acting(world)

        for number in range(5):
            await world.workload.add_pods(f"node-{number}", 20)
        await world.until(lambda: len(world.trace.allocator_calls()) > 8, within=stage.within(10))
        await (world.programs.kill(leader) if dies else world.programs.stop(leader))
        await world.workload.add_pods("node-4", 20)
        await world.until(lambda: world.running_pods() == 121, within=120)

        (other,) = {"controller a", "controller b"} - {leader}
        assert acting(world) == [leader, other]
