"""A mishap: something that happens to a program, a machine or the cluster at one moment of a run.

Mishaps are written into a run's plan, each with the number that its chance is drawn from, so one can be taken out of the
plan without changing what the others do.
"""

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar

from podtide.simulation.faults.scene import FaultScene


class Mishap(ABC):
    """A kind of mishap."""

    name: ClassVar[str]
    every_seconds: ClassVar[float]
    """How often it happens while there is trouble, on average."""
    of_networks: ClassVar[bool] = False
    """Whether it is only of interest where there are secondary networks."""

    @abstractmethod
    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Let it happen. Answers in words to whom; "" when there was nobody."""


def is_of_networks(fault: object) -> bool:
    """Whether it is a mishap that is only of interest where there are secondary networks."""
    return isinstance(fault, Mishap) and fault.of_networks
