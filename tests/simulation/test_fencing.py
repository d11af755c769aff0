"""Pods that outlive their Node on a machine that lives on are ended before somebody else gets what they have."""

from io import StringIO

from podtide.resources.node import Node
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.embedded_world import open_embedded_world
from podtide.simulation.fencing import keep_fencing, left_by_another_node


async def test_the_pods_that_a_removed_node_left_behind_are_ended_and_no_others() -> None:
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    async with open_embedded_world("10.0.0.0/24", clock=clock, seed=1, log=log) as world:
        world.start_controller()
        machine = await world.add_node("node-1")
        await world.workload.add_pods("node-1", 3)
        await world.until(lambda: world.running_pods() == 3, within=60)
        assert await left_by_another_node(world, machine) == []

        await world.cluster.delete(Node, "node-1", uid=machine.uid)
        machine.uid = (await world.create_node("node-1")).metadata.uid
        await world.pass_time(30)
        await world.workload.add_pods("node-1", 2)
        await world.until(lambda: world.running_pods() == 5, within=60)
        left = await left_by_another_node(world, machine)
        assert left == ["default/pod-0", "default/pod-1", "default/pod-2"]

        world.programs.start("operator", keep_fencing(world))
        await world.until(lambda: world.running_pods() == 2, within=130)
        assert await left_by_another_node(world, machine) == []
