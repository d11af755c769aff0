"""Where a mishap happens: one cluster's world, with all that is needed to break it and to mend what was broken."""

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
    """One cluster, and the agenda of all."""

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
        """The programs that run now, by replica."""
        self._starts = 0

    def plan(self, seconds: float, act: Act) -> None:
        """Do this so many seconds from now, or when the trouble is over."""
        self._agenda.plan(seconds, act)

    # Subnets, machines and agents

    def pick_subnet(self, chance: Random) -> str:
        """Any subnet that pods of this cluster have their first addresses in."""
        subnets = sorted({self.world.subnet_of(name) for name in self.world.machines})
        return chance.choice(subnets) if len(subnets) > 1 else self.world.options.subnet

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
            name = full_name(self.world.name, f"{_CONTROLLER}{replica}.{self._starts}")
            self._controllers[replica] = name
            self.world.start_controller(name, elected=True)

    async def kill_controller(self, replica: int) -> None:
        """The replica is no more."""
        await self.world.programs.kill(self._controllers.pop(replica))

    def controllers(self) -> dict[int, str]:
        """The programs of the replicas that run."""
        return dict(self._controllers)
