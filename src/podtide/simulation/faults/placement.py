"""Faults of what places pods: stale views, an absent controller or policy, and kubelets that change what Nodes publish.

They need a scheduler, and strike only in runs with placement.
"""

import asyncio
from contextlib import suppress
from random import Random

from podtide.cluster.port import NotFound, Patch
from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.simulation.faults.conditions import OneWatch, WatchTrouble
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.pods import MANAGER, is_terminal, only_node

_HOUR_SECONDS = 3600.0
_SHORTEST_SECONDS = 5.0
_LONGEST_STALE_SECONDS = 75.0
_LONGEST_ABSENCE_SECONDS = 90.0
_LONGEST_DRAIN_SECONDS = 60.0
_MOST_PUBLISHED = 20
_EVEN = 0.5


class StaleCapacities(Mishap):
    """The scheduler's view of Nodes is stale for a while: it places pods by what was published before."""

    name = "stale-capacities"
    every_seconds = 60.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Hold the events of Nodes back."""
        program, conditions = scene.world.scheduler_program, scene.conditions
        if program in conditions.spoilt:
            return ""
        spoilt = conditions.spoilt[program] = OneWatch(Node, WatchTrouble.STALE, asyncio.Event())

        async def catch_up() -> None:
            spoilt.is_over.set()
            del conditions.spoilt[program]

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_STALE_SECONDS), catch_up)
        return program


class ControllersAway(Mishap):
    """No replica of the controller runs for a while, or for an hour: what Nodes publish stays as it is."""

    name = "controllers-away"
    every_seconds = 150.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Kill all, and start them again later."""
        if not scene.controllers():
            return ""
        for replica in scene.controllers():
            await scene.kill_controller(replica)

        async def come_back() -> None:
            for replica in scene.replicas:
                scene.start_controller(replica)

        seconds = chance.choice((chance.uniform(_SHORTEST_SECONDS, _LONGEST_ABSENCE_SECONDS), _HOUR_SECONDS))
        scene.plan(seconds, come_back)
        return f"for {seconds:.0f} s"


class PolicyRemoved(Mishap):
    """The policy that makes pods request an address is removed, and put back later."""

    name = "policy-removed"
    every_seconds = 100.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Remove it, and put it back."""
        policy = scene.world.workload.policy
        if policy is None or policy.is_removed:
            return ""
        policy.is_removed = True

        async def put_back() -> None:
            policy.is_removed = False

        seconds = chance.uniform(_SHORTEST_SECONDS, _LONGEST_ABSENCE_SECONDS)
        scene.plan(seconds, put_back)
        return f"for {seconds:.0f} s"


class NodeDrained(Mishap):
    """A node is cordoned and drained, as before an upgrade, and takes pods again later."""

    name = "node-drained"
    every_seconds = 90.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Cordon it, and have its pods placed elsewhere."""
        machine, world = scene.pick_machine(chance), scene.world
        if machine is None or not machine.uid:
            return ""
        await _patch(scene, machine, {"spec": {"unschedulable": True}})
        await move_pods(scene, machine)

        async def uncordon() -> None:
            if world.machines.get(machine.name) is machine:
                with suppress(NotFound):
                    await _patch(scene, machine, {"spec": {"unschedulable": None}})

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_DRAIN_SECONDS), uncordon)
        return machine.name


class KubeletRestarted(Mishap):
    """A kubelet restarts, and checks the pods that run there as if they were new. Half of the time it has lost its records.

    Then it sets every extended resource of its Node to 0 first.
    """

    name = "kubelet-restarted"
    every_seconds = 60.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Restart it."""
        machine = scene.pick_machine(chance)
        if machine is None or not machine.uid:
            return ""
        loses_records = chance.random() < _EVEN
        if loses_records:
            await _publish(scene, machine, capacity="0", allocatable="0")
        if not loses_records or chance.random() < _EVEN:
            machine.kubelet.admit_again()
        return f"on {machine.name}{', without its records' if loses_records else ''}"


class ResourcesEdited(Mishap):
    """A person edits what a Node publishes; a kubelet then computes allocatable from capacity, as it does every few minutes."""

    name = "resources-edited"
    every_seconds = 60.0
    of_placement = True

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Edit capacity or allocatable."""
        machine = scene.pick_machine(chance)
        if machine is None or not machine.uid:
            return ""
        number, is_recomputed = str(chance.randrange(_MOST_PUBLISHED)), chance.random() < _EVEN
        if is_recomputed:
            await _publish(scene, machine, capacity=number, allocatable=number)
        else:
            await _publish(scene, machine, allocatable=number)
        return f"of {machine.name} to {number}"


async def move_pods(scene: FaultScene, machine: Machine) -> None:
    """Delete the pods of a machine, and create another for each: their kubelet takes its time to end them."""
    world = scene.world
    for pod in (await world.cluster.list(Pod, fields=f"spec.nodeName={machine.name}")).items:
        if not is_terminal(pod) and not pod.metadata.deletion_timestamp:
            with suppress(NotFound):
                await world.workload.remove_pod(pod.metadata.name)
                await world.workload.add_unbound_pods(1, only_on=only_node(pod))


async def _publish(scene: FaultScene, machine: Machine, **numbers: str) -> None:
    status = {part: {IPV4_RESOURCE: number} for part, number in numbers.items()}
    await _patch(scene, machine, {"status": status}, status=True)


async def _patch(
    scene: FaultScene, machine: Machine, changes: dict[str, object], *, status: bool = False
) -> None:
    await scene.world.cluster.patch(
        Patch(Node, machine.name, changes=changes, uid=machine.uid, status=status), manager=MANAGER
    )
