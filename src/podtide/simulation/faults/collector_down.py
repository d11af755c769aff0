"""A cluster that does not tidy up."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_SHORTEST_SECONDS = 10.0
_LONGEST_SECONDS = 90.0


class CollectorDown(Mishap):
    """The cluster's garbage collector is behind, or down: what has lost its owner stays as it was, for a while."""

    name = "collector-down"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Stop it, and start it again later."""
        housekeeping = scene.cluster.server.housekeeping
        if not housekeeping.is_collecting:
            return ""
        housekeeping.is_collecting = False

        async def tidy_up() -> None:
            housekeeping.is_collecting = True

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), tidy_up)
        return "for what has lost its owner"
