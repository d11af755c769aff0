"""Disks that fail for once under a node's agent."""

import asyncio
from contextlib import suppress
from random import Random

from podtide.core.errors import StopError
from podtide.runtime.disk import DiskFailed
from podtide.runtime.memory_disk import DiskWeakness, MemoryDisk
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.nodes.machine import Machine

_PATIENCE_SECONDS = 8.0
_AT_ONCE_SECONDS = 1.0
_LONGEST_ABSENCE_SECONDS = 20.0
_LOSES_POWER = 0.5


class WentOn(StopError):
    """An agent did not end when nobody knew any more what was on its disk."""


class DiskFailure(Mishap):
    """An fsync of the journal fails: when something is appended, when it is written anew, or just after it was renamed.

    The agent has to end by itself. Then it is started again, as whoever looks after it does; and the machine may lose its
    power before or after that, and with it whatever only the kernel's memory had.
    """

    name = "disk-failure"
    every_seconds = 60.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Wait for an occasion, and let the disk fail at it."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent is None or not isinstance(machine.disk, MemoryDisk):
            return ""
        weakness = chance.choice(list(DiskWeakness))
        if not await _failed(machine.disk, weakness):
            return ""
        error = await scene.world.programs.end_of(machine.agent_program, within_seconds=_AT_ONCE_SECONDS)
        if not isinstance(error, DiskFailed):
            raise WentOn(f"{machine.agent_program} ended by {error!r} after its disk failed")
        await scene.world.kill_agent(machine.name)
        if chance.random() < _LOSES_POWER:
            await _lose_power(scene, machine)
        else:
            absence = chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS)
            scene.plan(absence, lambda: scene.start_agent_if_none(machine))
            if chance.random() < _LOSES_POWER:
                again = absence + chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS)
                scene.plan(again, lambda: _lose_power(scene, machine))
        return f"{machine.agent_program}, at {weakness.value}"


async def _failed(disk: MemoryDisk, weakness: DiskWeakness) -> bool:
    """Whether there was an occasion to fail."""
    struck = asyncio.Event()
    disk.fail_at(weakness, struck.set)
    with suppress(TimeoutError):
        await asyncio.wait_for(struck.wait(), _PATIENCE_SECONDS)
    disk.recover()
    return struck.is_set()


async def _lose_power(scene: Scene, machine: Machine) -> None:
    if scene.world.machines.get(machine.name) is machine:
        scene.doors.switch_off(machine.name)
        await scene.world.crash_machine(machine.name)
