"""What the benchmarks of the simulation drive: a whole cluster on virtual time, whose pods come and go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from time import perf_counter, process_time
from typing import NoReturn

from msgspec import Struct

from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.checks.audit_loop import Auditor
from podtide.simulation.trace import Trace
from podtide.simulation.world.embedded_world import open_embedded_world
from podtide.simulation.world.world import World

PATIENCE_SECONDS = 600.0
SECONDS_BETWEEN_NODES = 0.01


class Stopwatch:
    """What has passed since it was made: on the wall, on the processor, and in the simulated cluster."""

    def __init__(self) -> None:
        self._began = perf_counter(), process_time(), asyncio.get_running_loop().time()

    def read(self) -> "Passed":
        """What has passed by now."""
        wall, processor, simulated = self._began
        return Passed(
            perf_counter() - wall,
            process_time() - processor,
            asyncio.get_running_loop().time() - simulated,
        )


class Passed(Struct, frozen=True):
    """Seconds."""

    wall: float
    processor: float
    simulated: float


async def attend(auditor: Auditor, trace: Trace) -> NoReturn:
    """Look after every step, until an invariant is broken."""
    stepped = asyncio.Event()
    trace.listeners.append(lambda _entry: stepped.set())
    while True:
        await stepped.wait()
        stepped.clear()
        await auditor.look()


@asynccontextmanager
async def cluster(nodes: int, subnet: str, *, audited: bool) -> AsyncIterator[World]:
    """A cluster whose nodes have all joined. If it is to be audited, the invariants are looked at after every step."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    async with open_embedded_world(subnet, clock=clock, seed=1, log=log) as world:
        world.trace.is_kept = False
        if audited:
            world.programs.start("auditor", attend(world.auditor, world.trace))
        world.start_controller()
        for number in range(nodes):
            await world.add_node(f"node-{number}")
        await world.until(lambda: _all_synced(world), within=PATIENCE_SECONDS)
        yield world
        world.programs.check()
        await world.auditor.check()


def _all_synced(world: World) -> bool:
    return all(machine.agent and machine.agent.synced.is_set() for machine in world.machines.values())
