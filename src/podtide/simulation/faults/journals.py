"""Journals that are lost or damaged."""

from random import Random

from podtide.agent.kept_pool import JOURNAL
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene


class JournalLost(Mishap):
    """Somebody wipes an agent's directory, or the machine comes back with a new disk under running sandboxes."""

    name = "journal-lost"
    every_seconds = 200.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Start the agent on an empty disk."""
        machine = scene.pick_machine(chance)
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
        machine = scene.pick_machine(chance)
        content = machine.disk.read(JOURNAL) if machine else None
        if machine is None or not content:
            return ""
        await scene.world.kill_agent(machine.name)
        damaged = bytearray(content)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        machine.disk.replace(JOURNAL, bytes(damaged))
        await scene.world.start_agent(machine.name)
        return machine.name
