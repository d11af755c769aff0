"""A fault between a kubelet and the plugin: calls that are made twice, too late, or not at all."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import ClassVar

from podtide.cni.versions import Verb

Answer = tuple[int, bytes]
Call = Callable[[], Awaitable[Answer]]
Leave = Callable[[Awaitable[object]], None]


class PluginFault(ABC):
    """Strikes calls of the plugin."""

    name: ClassVar[str]
    rate: ClassVar[float]
    """The probability that it strikes a call that it concerns."""
    verbs: ClassVar[frozenset[Verb]]

    @abstractmethod
    async def call(self, call: Call, leave: Leave, chance: Random) -> Answer:
        """Call the plugin, or not. `leave` runs an awaitable in the background."""


def verb_of(environment: Mapping[str, str]) -> Verb:
    """The verb that the plugin is called with."""
    return Verb(environment["CNI_COMMAND"])
