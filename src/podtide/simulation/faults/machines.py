"""Faults of machines and their Nodes: power losses, replacements, Nodes deleted and registered again, wall clocks set."""

from contextlib import suppress
from random import Random

from podtide.cluster.port import NotFound
from podtide.resources.node import Node
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.machine import Machine

_LONGEST_ABSENCE_SECONDS = 60.0
_PODS_STAY_SECONDS = 40.0
"""How long the cluster waits before it ends the pods of a Node that is deleted."""
_AGENT_GOES_TOO = 0.5
_MOST_CLOCK_SECONDS = 30.0


class PowerLoss(Mishap):
    """A machine loses power and starts again: its sandboxes are gone, and the end of its journal may be torn."""

    name = "power-loss"
    every_seconds = 120.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Switch it off and on."""
        machine = scene.pick_machine(chance)
        if machine is None:
            return ""
        scene.doors.switch_off(machine.name)
        await scene.world.crash_machine(machine.name)
        return machine.name


class ClockJump(Mishap):
    """A time server corrects the wall clock, forward or back. The monotonic clock is not touched."""

    name = "clock-jump"
    every_seconds = 100.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Move it."""
        seconds = chance.uniform(-_MOST_CLOCK_SECONDS, _MOST_CLOCK_SECONDS)
        scene.clock.move(seconds)
        return f"by {seconds:+.3f} s"


class NodeRecreated(Mishap):
    """The Node of a machine that runs on is deleted; its kubelet registers it again, with another uid.

    The agent is a pod of the Node itself: it may end with the Node, and begin again when the Node is back.
    """

    name = "node-recreated"
    every_seconds = 75.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete the Node, and create it again later."""
        machine = scene.pick_machine(chance)
        if machine is None or not machine.uid:
            return ""
        world = scene.world
        await world.cluster.delete(Node, machine.name, uid=machine.uid)
        scene.node_gone_at = scene.clock.monotonic()
        machine.uid = ""
        if chance.random() < _AGENT_GOES_TOO:
            await world.kill_agent(machine.name)
        plan_registration(scene, machine, chance)
        return machine.name


def plan_registration(scene: FaultScene, machine: Machine, chance: Random) -> None:
    """Plan what follows when a machine's Node is deleted.

    The cluster ends the pods that are bound to it, and its kubelet registers it again when restarted.
    """
    world = scene.world

    async def end_pods() -> None:
        if world.machines.get(machine.name) is machine and not machine.uid:
            await world.workload.clear_node(machine.name)

    async def register() -> None:
        if world.machines.get(machine.name) is machine:
            if not machine.uid:
                machine.uid = (await world.create_node(machine.name)).metadata.uid
            await scene.start_agent_if_none(machine)

    scene.plan(_PODS_STAY_SECONDS, end_pods)
    scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), register)


class MachineReplaced(Mishap):
    """A machine is switched off for good, and a new one joins under its name."""

    name = "machine-replaced"
    every_seconds = 75.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Remove it, and add another later."""
        machine = await _remove(scene, chance)
        if machine is None:
            return ""

        async def join() -> None:
            with suppress(
                NotFound
            ):  # a Node that a backup brought back: clouds delete those without a machine
                await scene.cluster.delete(Node, machine.name)
            await scene.world.add_node(machine.name, policy=machine.policy)

        scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), join)
        return machine.name


class NodeRenamed(Mishap):
    """A machine is switched off for good, and a new one joins under another name: it needs a slice, and one gets free."""

    name = "node-renamed"
    every_seconds = 60.0
    of_networks = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Remove it, and add another later."""
        machine = await _remove(scene, chance)
        if machine is None:
            return ""
        stem, _, number = machine.name.partition(".")

        async def join() -> None:
            await scene.world.add_node(f"{stem}.{int(number or 0) + 1}", policy=machine.policy)

        scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), join)
        return machine.name


async def _remove(scene: FaultScene, chance: Random) -> Machine | None:
    """Switch a registered machine off for good, and return it."""
    machine = scene.pick_machine(chance)
    if machine is None or not machine.uid:
        return None
    scene.doors.switch_off(machine.name)
    await scene.world.remove_node(machine.name)
    scene.node_gone_at = scene.clock.monotonic()
    return machine
