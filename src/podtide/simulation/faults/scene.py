"""Where mishaps happen: the world, with all that is needed to break it and to mend what was broken.

One hand does it all, one thing after the other: a machine that is being restarted is not replaced at the same moment.
What is broken for a while is mended later, or when the trouble is over, whichever comes first.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from random import Random

from podtide.cluster.embedded import EmbeddedCluster
from podtide.simulation.adjustable_clock import AdjustableClock
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.faulty_doors import FaultyDoors
from podtide.simulation.machine import Machine
from podtide.simulation.restartable_allocator import RestartableAllocator
from podtide.simulation.world import World

Act = Callable[[], Awaitable[None]]
_CONTROLLER = "controller-"


class Scene:
    """The world and its agenda."""

    def __init__(  # noqa: PLR0913 - the world, and the parts of it that can be reached by no other way
        self,
        world: World,
        conditions: Conditions,
        *,
        cluster: EmbeddedCluster,
        doors: FaultyDoors,
        allocator: RestartableAllocator,
        clock: AdjustableClock,
    ) -> None:
        self.world = world
        self.conditions = conditions
        self.cluster = cluster
        self.doors = doors
        self.allocator = allocator
        self.clock = clock
        self._agenda: list[tuple[float, int, Act]] = []
        self._noted = 0
        self._controllers: dict[int, str] = {}
        """The programs that run now, by replica."""
        self._starts = 0

    # Time

    def plan(self, seconds: float, act: Act) -> None:
        """Do this so many seconds from now, or when the trouble is over."""
        self._noted += 1
        heapq.heappush(self._agenda, (self.clock.monotonic() + seconds, self._noted, act))

    async def play_until(self, end: float) -> None:
        """Do what is planned, each at its time, until then."""
        while self._agenda and self._agenda[0][0] < end:
            due, _number, act = heapq.heappop(self._agenda)
            await asyncio.sleep(max(0.0, due - self.clock.monotonic()))
            await act()
        await asyncio.sleep(max(0.0, end - self.clock.monotonic()))

    async def mend_everything(self) -> None:
        """Do at once what is still planned: nothing stays broken."""
        while self._agenda:
            _due, _number, act = heapq.heappop(self._agenda)
            await act()

    # Machines and agents

    def pick_machine(self, chance: Random) -> Machine | None:
        """Any machine."""
        machines = list(self.world.machines.values())
        return chance.choice(machines) if machines else None

    async def start_agent_if_none(self, machine: Machine) -> None:
        """Start the machine's agent, unless the machine is gone or its agent runs."""
        if self.world.machines.get(machine.name) is machine and machine.agent is None:
            await self.world.start_agent(machine.name)

    # Controllers

    def start_controller(self, replica: int) -> None:
        """Start a replica that does not run. Every start is a process of its own, with an identity of its own."""
        if replica not in self._controllers:
            self._starts += 1
            name = self._controllers[replica] = f"{_CONTROLLER}{replica}.{self._starts}"
            self.world.start_controller(name, elected=True)

    async def kill_controller(self, replica: int) -> None:
        """The replica is no more."""
        await self.world.programs.kill(self._controllers.pop(replica))

    def controllers(self) -> dict[int, str]:
        """The programs of the replicas that run."""
        return dict(self._controllers)
