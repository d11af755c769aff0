"""Journals that are lost or damaged.

A node without records has nothing but the cluster's word to go by, so that word must be true: of its pods it is not
told the past, and its status is not one that somebody put back.
"""

from random import Random

from podtide.agent.pool.pool_storage import JOURNAL
from podtide.allocator.port import NoSuchContainer
from podtide.cluster.port import NotFound
from podtide.core.errors import InvalidInput
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.nodes.machine import Machine


class JournalLost(Mishap):
    """Somebody wipes an agent's directory, or the machine comes back with a new disk under running sandboxes."""

    name = "journal-lost"
    every_seconds = 200.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Start the agent on an empty disk."""
        machine = await _pick(scene, chance)
        if machine is None:
            return ""
        await scene.world.kill_agent(machine.name)
        scene.world.lose_disk(machine.name)
        await scene.world.start_agent(machine.name)
        return machine.name


class JournalDamaged(Mishap):
    """A disk that gives back other bytes than were written."""

    name = "journal-damaged"
    every_seconds = 200.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Start the agent on a journal with a flipped bit."""
        machine = await _pick(scene, chance)
        content = machine.disk.read(JOURNAL) if machine else None
        if machine is None or not content:
            return ""
        await scene.world.kill_agent(machine.name)
        damaged = bytearray(content)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        machine.disk.replace(JOURNAL, bytes(damaged))
        await scene.world.start_agent(machine.name)
        return machine.name


async def _pick(scene: Scene, chance: Random) -> Machine | None:
    """A machine about which the cluster is right."""
    machine = scene.pick_machine(chance)
    if machine is None or not await _shows_what_is_granted(scene, machine):
        return None
    scene.conditions.told_the_truth.add(machine.agent_program)
    return machine


async def _shows_what_is_granted(scene: Scene, machine: Machine) -> bool:
    try:
        config = await scene.cluster.get(NodeNetworkConfig, machine.name, SYSTEM_NAMESPACE)
        granted = await scene.allocator.get_container(machine.uid, cluster=scene.world.options.cluster)
    except (NotFound, NoSuchContainer, InvalidInput):
        return True  # there is nothing to be wrong about
    shown = [container.version for container in config.status.network_containers]
    return shown in ([], [granted.version])
