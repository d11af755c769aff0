"""A mishap: something that happens to a program, a machine or the cluster at one moment of a run.

Mishaps are part of a run's plan, each with the number that its random choices are drawn from, so one can be taken out of
the plan without changing what the others do.
"""

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar

from podtide.simulation.faults.scene import FaultScene


class Mishap(ABC):
    """A kind of mishap."""

    name: ClassVar[str]
    every_seconds: ClassVar[float]
    """The mean time between two of them while faults strike."""
    of_networks: ClassVar[bool] = False
    """Whether it needs secondary networks."""
    of_placement: ClassVar[bool] = False
    """Whether it needs a scheduler that places pods."""
    only_by_name: ClassVar[bool] = False
    """Whether `all` leaves it out: it came later, and would change what seeds that are kept do. The swarm has it."""

    @abstractmethod
    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Make it happen. Returns in words what it happened to; "" when there was nothing it could happen to."""


def is_of_placement(fault: object) -> bool:
    """Whether it is a mishap that needs a scheduler."""
    return isinstance(fault, Mishap) and fault.of_placement


def is_of_networks(fault: object) -> bool:
    """Whether it is a mishap that needs secondary networks."""
    return isinstance(fault, Mishap) and fault.of_networks
