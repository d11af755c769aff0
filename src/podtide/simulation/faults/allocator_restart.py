"""An allocator that is restarted."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene


class AllocatorRestart(Mishap):
    """The allocator's process ends and another begins, with nothing but the database."""

    name = "allocator-restart"
    every_seconds = 100.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Restart it."""
        del chance
        await scene.allocator.restart()
        return "on its database"
