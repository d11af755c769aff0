"""Nodes that go, and come again under their names."""

from random import Random

from podtide.resources.node import Node
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_LONGEST_ABSENCE_SECONDS = 30.0


class NodeRecreated(Mishap):
    """Somebody deletes a Node whose machine lives on; its kubelet registers it again, with another uid.

    The cluster ends the pods of a Node that is gone.
    """

    name = "node-recreated"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Delete the Node, and make it again later."""
        machine = scene.pick_machine(chance)
        if machine is None or not machine.uid:
            return ""
        world = scene.world
        await world.cluster.delete(Node, machine.name, uid=machine.uid)
        machine.uid = ""
        await world.workload.clear_node(machine.name)

        async def register() -> None:
            if world.machines.get(machine.name) is machine:
                machine.uid = (await world.create_node(machine.name)).metadata.uid

        scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), register)
        return machine.name


class MachineReplaced(Mishap):
    """A machine is switched off for good, and a new one joins under its name."""

    name = "machine-replaced"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Remove it, and add another later."""
        machine = scene.pick_machine(chance)
        if machine is None or not machine.uid:
            return ""
        world = scene.world
        scene.doors.switch_off(machine.name)
        await world.remove_node(machine.name)

        async def join() -> None:
            await world.add_node(machine.name)

        scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), join)
        return machine.name
