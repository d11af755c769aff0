"""Where a mishap happens: one cluster's world, with all that is needed to break it and to repair it."""

import math
from random import Random

from podtide.cluster.embedded import EmbeddedCluster
from podtide.simulation.adjustable_clock import AdjustableClock
from podtide.simulation.faults.agenda import Act, Agenda
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.faulty_doors import FaultyDoors
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.world.restartable_allocator import RestartableAllocator
from podtide.simulation.world.world import World

_CONTROLLER = "controller-"


class FaultScene:
    """One cluster, with the agenda of all clusters."""

    def __init__(  # noqa: PLR0913 - the world, and the parts of it that can be reached by no other way
        self,
        world: World,
        conditions: Conditions,
        *,
        cluster: EmbeddedCluster,
        doors: FaultyDoors,
        allocator: RestartableAllocator,
        clock: AdjustableClock,
        agenda: Agenda,
    ) -> None:
        self.world = world
        self.conditions = conditions
        self.cluster = cluster
        self.doors = doors
        self.allocator = allocator
        self.clock = clock
        self.restored_at = -math.inf
        """When the cluster was last restored from a backup."""
        self.node_gone_at = -math.inf
        """When a Node was last deleted."""
        self._agenda = agenda
        self._controllers: dict[int, str] = {}
        """The names of the running controllers, by replica."""
        self._starts = 0
        self.replicas: dict[int, None] = {}
        """All replicas of the controller, whether they run or not."""

    def plan(self, seconds: float, act: Act) -> None:
        """Plan an act for so many seconds from now, or for when the faults stop if that is earlier."""
        self._agenda.plan(seconds, act)

    # Subnets, machines and agents

    def pick_subnet(self, chance: Random) -> str:
        """Any subnet of the first addresses of this cluster's pods."""
        subnets = sorted({self.world.subnet_of(name) for name in self.world.machines})
        return chance.choice(subnets) if len(subnets) > 1 else self.world.options.subnet

    def pick_machine(self, chance: Random) -> Machine | None:
        """Any machine; None if there is none."""
        machines = list(self.world.machines.values())
        return chance.choice(machines) if machines else None

    async def start_agent_if_none(self, machine: Machine) -> None:
        """Start the machine's agent, unless the machine was removed or its agent runs."""
        if self.world.machines.get(machine.name) is machine and machine.agent is None:
            await self.world.start_agent(machine.name)

    # Controllers

    def start_controller(self, replica: int) -> None:
        """Start a replica unless it runs. Every start is a program with a name, and an identity, of its own."""
        self.replicas[replica] = None
        if replica not in self._controllers:
            self._starts += 1
            name = full_name(self.world.name, f"{_CONTROLLER}{replica}.{self._starts}")
            self._controllers[replica] = name
            self.world.start_controller(name, elected=True)

    async def kill_controller(self, replica: int) -> None:
        """Kill a replica."""
        await self.world.programs.kill(self._controllers.pop(replica))

    def controllers(self) -> dict[int, str]:
        """The names of the running controllers, by replica."""
        return dict(self._controllers)
