"""Machines that lose power."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene


class PowerLoss(Mishap):
    """A machine loses power and starts again: its sandboxes are gone, and the end of its journal may be torn."""

    name = "power-loss"
    every_seconds = 120.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Switch it off and on."""
        machine = scene.pick_machine(chance)
        if machine is None:
            return ""
        scene.doors.switch_off(machine.name)
        await scene.world.crash_machine(machine.name)
        return machine.name
