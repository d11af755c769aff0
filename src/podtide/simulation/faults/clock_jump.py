"""Wall clocks that are set."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_MOST_SECONDS = 30.0


class ClockJump(Mishap):
    """A time server corrects the wall clock, forward or back. Time that only ever grows is not touched."""

    name = "clock-jump"
    every_seconds = 100.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Move it."""
        seconds = chance.uniform(-_MOST_SECONDS, _MOST_SECONDS)
        scene.clock.move(seconds)
        return f"by {seconds:+.3f} s"
