"""A fault on a line, that is, on a program's connection to the cluster or the allocator.

Faults wrap a request one around the other, so they combine freely: a request may be delayed, carried out twice, and its
answer be lost. Whether a fault strikes is drawn from a random stream of that fault and program, so leaving one fault out
does not change what the others draw.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random
from typing import ClassVar, Protocol, TypeVar

from msgspec import Struct

from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.port import Page, R, Unavailable, WatchEvent
from podtide.core.errors import RetryError
from podtide.resources.base import Resource

T = TypeVar("T")
Send = Callable[[], Awaitable[T]]
Relist = Callable[[str], Awaitable[Page[R]]]
"""Sends the same list again, from a continue token on."""

CLUSTER = "cluster"
ALLOCATOR = "allocator"
_READS = frozenset(
    {
        *("get", "list"),
        *("get_subnet", "list_subnets", "get_container", "list_containers", "owed", "utilization", "history"),
        "usage_history",
    }
)


class LineRequest(Struct, frozen=True, kw_only=True):
    """One request of a program, to either port."""

    program: str
    port: str
    verb: str
    subject: str

    @property
    def writes(self) -> bool:
        """Whether it counts as a write."""
        return self.verb not in _READS

    def is_about(self, kind: type[Resource]) -> bool:
        """Whether it is about objects of a kind."""
        return self.port == CLUSTER and self.subject.partition(" ")[0] == kind.api.kind

    def unanswered(self, words: str) -> RetryError:
        """The error that a program gets when its request is not answered."""
        told = f"{self}: {words}"
        return AllocatorUnavailable(told) if self.port == ALLOCATOR else Unavailable(told)

    def __str__(self) -> str:
        return f"{self.verb} {self.subject} by {self.program}"


class FaultContext(Struct, frozen=True):
    """What a fault needs to strike a request."""

    request: LineRequest
    chance: Random
    leave: Callable[[Awaitable[object]], None]
    """Runs an awaitable in the background: what has left a program arrives, even if the program ends."""


class FaultPhase(Protocol):
    """Tells whether faults strike now."""

    @property
    def is_bad(self) -> bool:
        """False once the faults have stopped."""
        ...


class LineFault(ABC):
    """The base of all faults on lines."""

    name: ClassVar[str]
    rate: ClassVar[float]
    """The probability that it strikes a request that it concerns."""


class RequestFault(LineFault):
    """Strikes requests of either port."""

    def concerns(self, request: LineRequest) -> bool:
        """Whether it can strike this request."""
        return bool(request)

    @abstractmethod
    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Carry out the request, or not. `send` fails once its program is killed; `resend` does not."""


class ListFault(LineFault):
    """Changes the answer to a list."""

    @abstractmethod
    async def answer(self, newest: Page[R], relist: Relist[R], chance: Random) -> Page[R]:
        """The page as the program gets it."""


class WatchFault(LineFault):
    """Changes the events of a watch for as long as it lasts."""

    @abstractmethod
    def wrap(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, phase: FaultPhase
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The events as the program gets them."""
