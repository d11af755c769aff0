"""Faults of programs: an agent or a controller dies and comes back, or an agent is disconnected."""

import asyncio
from contextlib import suppress
from random import Random

from podtide.simulation.faults.conditions import Fuse
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene

_MOST_REQUESTS = 6
_PATIENCE_SECONDS = 5.0
_LONGEST_ABSENCE_SECONDS = 60.0
_PARTITION_NOTICED_SECONDS = 60.0
_SHORTEST_PARTITION_SECONDS = 10.0
_LONGEST_PARTITION_SECONDS = 420.0


class AgentCrash(Mishap):
    """kill -9, or out of memory, in a node agent: at one of its next requests, or while it sends none."""

    name = "agent-crash"
    every_seconds = 40.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Kill it, and start it again later, on its journal."""
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

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Kill it, and start it again later."""
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


class Partition(Mishap):
    """A node's agent has no connection to the API server: for seconds, or for longer than it may go on without."""

    name = "partition"
    every_seconds = 120.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Disconnect it, and connect it again later."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent_program in scene.conditions.cut_off:
            return ""
        program = machine.agent_program
        scene.conditions.cut(program, within_seconds=chance.uniform(0.0, _PARTITION_NOTICED_SECONDS))

        async def connect() -> None:
            scene.conditions.connect(program)

        scene.plan(chance.uniform(_SHORTEST_PARTITION_SECONDS, _LONGEST_PARTITION_SECONDS), connect)
        return program


async def _until_the_moment(scene: FaultScene, program: str, chance: Random) -> None:
    """Wait for one of the program's next requests, or until it made none for a while."""
    after = chance.random() < 0.5  # noqa: PLR2004 - one as likely as the other
    fuse = scene.conditions.fuses[program] = Fuse(chance.randint(1, _MOST_REQUESTS), after=after)
    with suppress(TimeoutError):
        await asyncio.wait_for(fuse.blown.wait(), chance.uniform(0.0, _PATIENCE_SECONDS))
    del scene.conditions.fuses[program]
