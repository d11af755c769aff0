"""Faults of the disks under the agents: an fsync fails, or the journal is lost or damaged.

An agent without its journal can only rebuild its pool from the cluster, so the cluster must be right: while a journal is
lost, the agent's lists of pods are not stale, and its NodeNetworkConfig's status is not an older one that was put back.
"""

import asyncio
from contextlib import suppress
from random import Random

from podtide.agent.pool.journal import JOURNAL
from podtide.allocator.errors import NoSuchContainer
from podtide.cluster.port import NotFound
from podtide.core.errors import StopError
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.disk import DiskFailed
from podtide.runtime.memory_disk import DiskWeakness, MemoryDisk
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.machine import Machine

_PATIENCE_SECONDS = 8.0
_AT_ONCE_SECONDS = 1.0
_LONGEST_ABSENCE_SECONDS = 20.0
_LOSES_POWER = 0.5


class AgentWentOn(StopError):
    """An agent did not end although the state of its disk had become unknown."""


class DiskFailure(Mishap):
    """An fsync of the journal fails: when a record is appended, when the journal is rewritten, or just after its rename.

    The agent has to end by itself. Then it is started again, as a kubelet does; and the machine may lose its power before
    or after that, and with it whatever only the kernel's memory had.
    """

    name = "disk-failure"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Wait for an fsync, and fail it."""
        machine = scene.pick_machine(chance)
        if machine is None or machine.agent is None or not isinstance(machine.disk, MemoryDisk):
            return ""
        weakness = chance.choice(list(DiskWeakness))
        if not await _failed(machine.disk, weakness):
            return ""
        error = await scene.world.programs.end_of(machine.agent_program, within_seconds=_AT_ONCE_SECONDS)
        if not isinstance(error, DiskFailed):
            raise AgentWentOn(f"{machine.agent_program} ended by {error!r} after its disk failed")
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
    """Whether there was an fsync to fail."""
    struck = asyncio.Event()
    disk.fail_at(weakness, struck.set)
    with suppress(TimeoutError):
        await asyncio.wait_for(struck.wait(), _PATIENCE_SECONDS)
    disk.recover()
    return struck.is_set()


async def _lose_power(scene: FaultScene, machine: Machine) -> None:
    if scene.world.machines.get(machine.name) is machine:
        scene.doors.switch_off(machine.name)
        await scene.world.crash_machine(machine.name)


class JournalLost(Mishap):
    """An agent's directory is wiped, or the machine comes back with a new disk under running sandboxes."""

    name = "journal-lost"
    every_seconds = 200.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Start the agent on an empty disk."""
        machine = await _pick(scene, chance)
        if machine is None:
            return ""
        await scene.world.kill_agent(machine.name)
        scene.world.lose_disk(machine.name)
        await scene.world.start_agent(machine.name)
        return machine.name


class JournalDamaged(Mishap):
    """A disk that returns other bytes than were written."""

    name = "journal-damaged"
    every_seconds = 200.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
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


async def _pick(scene: FaultScene, chance: Random) -> Machine | None:
    """A machine whose NodeNetworkConfig shows what the allocator granted."""
    machine = scene.pick_machine(chance)
    if machine is None or not await _shows_what_is_granted(scene, machine):
        return None
    scene.conditions.told_the_truth.add(machine.agent_program)
    return machine


async def _shows_what_is_granted(scene: FaultScene, machine: Machine) -> bool:
    try:
        config = await scene.cluster.get(NodeNetworkConfig, machine.name, SYSTEM_NAMESPACE)
    except NotFound:
        return True  # there is nothing to be wrong about
    for shown in config.status.network_containers:
        try:
            granted = await scene.allocator.get_container(shown.id, cluster=scene.world.options.cluster)
        except NoSuchContainer:
            return False  # a Node that is back: its successor, which is gone, has what was granted since
        if granted.version != shown.version:
            return False
    return True
