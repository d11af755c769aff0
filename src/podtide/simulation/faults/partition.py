"""Agents that are cut off from the API server."""

from random import Random

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_SHORTEST_SECONDS = 10.0
_LONGEST_SECONDS = 420.0


class Partition(Mishap):
    """A node's agent has no connection to the API server: for seconds, or for longer than it may go on without."""

    name = "partition"
    every_seconds = 120.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Cut it off, and connect it again later."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent_program in scene.conditions.cut_off:
            return ""
        program = machine.agent_program
        scene.conditions.cut(program, within_seconds=chance.uniform(0.0, 60.0))

        async def connect() -> None:
            scene.conditions.connect(program)

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), connect)
        return program
