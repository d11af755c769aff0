"""Programs that die, and come back."""

import asyncio
from contextlib import suppress
from random import Random

from podtide.simulation.faults.fuse import Fuse
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_MOST_REQUESTS = 6
_PATIENCE_SECONDS = 5.0
_LONGEST_ABSENCE_SECONDS = 60.0


class AgentCrash(Mishap):
    """kill -9, or out of memory, in a node agent: at one of its next requests, or while it has nothing to ask."""

    name = "agent-crash"
    every_seconds = 40.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Kill it, and have it started again later, on its journal."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent is None:
            return ""
        await _until_the_moment(scene, machine.agent_program, chance)
        await scene.world.kill_agent(machine.name)
        absence = chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS)
        scene.plan(absence, lambda: scene.start_agent_if_none(machine))
        return machine.agent_program


class ControllerCrash(Mishap):
    """kill -9, or out of memory, in a replica of the controller: at one of its next requests, or at rest."""

    name = "controller-crash"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Kill it, and have it started again later."""
        running = scene.controllers()
        if not running:
            return ""
        replica = chance.choice(sorted(running))
        await _until_the_moment(scene, running[replica], chance)
        await scene.kill_controller(replica)

        async def start_again() -> None:
            scene.start_controller(replica)

        scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), start_again)
        return running[replica]


async def _until_the_moment(scene: Scene, program: str, chance: Random) -> None:
    """Wait for one of the program's next requests, or until it made none for a while."""
    after = chance.random() < 0.5  # noqa: PLR2004 - one as likely as the other
    fuse = scene.conditions.fuses[program] = Fuse(chance.randint(1, _MOST_REQUESTS), after=after)
    with suppress(TimeoutError):
        await asyncio.wait_for(fuse.blown.wait(), chance.uniform(0.0, _PATIENCE_SECONDS))
    del scene.conditions.fuses[program]
