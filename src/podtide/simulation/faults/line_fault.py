"""A fault on a line: something happens to a request, a list or a watch between a program and what it talks to.

Faults lie around a request like the layers of an onion, so they mix freely: a request may be delayed, carried out
twice, and its answer be lost. Whether a fault strikes is drawn from a stream of chance that is the fault's and the
program's own, so leaving one fault out does not change what the others draw.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random
from typing import ClassVar, Protocol, TypeVar

from msgspec import Struct

from podtide.allocator.port import AllocatorUnavailable
from podtide.cluster.port import Page, R, Unavailable, WatchEvent
from podtide.core.errors import RetryError
from podtide.resources.base import Resource

T = TypeVar("T")
Send = Callable[[], Awaitable[T]]
Relist = Callable[[str], Awaitable[Page[R]]]
"""The same list from a token on."""

CLUSTER = "cluster"
ALLOCATOR = "allocator"
_READS = frozenset(
    {
        *("get", "list"),
        *("get_subnet", "list_subnets", "get_container", "list_containers", "owed", "utilization", "history"),
    }
)


class LineRequest(Struct, frozen=True, kw_only=True):
    """What a program asks for."""

    program: str
    port: str
    verb: str
    subject: str

    @property
    def writes(self) -> bool:
        """Whether it may change anything."""
        return self.verb not in _READS

    def is_about(self, kind: type[Resource]) -> bool:
        """Whether it concerns objects of a kind."""
        return self.port == CLUSTER and self.subject.partition(" ")[0] == kind.api.kind

    def unanswered(self, words: str) -> RetryError:
        """What a program hears that got no answer."""
        told = f"{self}: {words}"
        return AllocatorUnavailable(told) if self.port == ALLOCATOR else Unavailable(told)

    def __str__(self) -> str:
        return f"{self.verb} {self.subject} by {self.program}"


class FaultContext(Struct, frozen=True):
    """What a fault may use that strikes a request."""

    request: LineRequest
    chance: Random
    leave: Callable[[Awaitable[object]], None]
    """Let something go on by itself: what has left a program arrives, whatever becomes of the program."""


class Weather(Protocol):
    """Whether there is trouble now."""

    @property
    def is_bad(self) -> bool:
        """False once the faults have stopped."""
        ...


class LineFault(ABC):
    """What all faults on lines have."""

    name: ClassVar[str]
    rate: ClassVar[float]
    """The chance that it strikes what it concerns."""


class RequestFault(LineFault):
    """Strikes requests of either port."""

    def concerns(self, request: LineRequest) -> bool:
        """Whether it can strike this request."""
        return bool(request)

    @abstractmethod
    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Have the request carried out, or not. `send` ends with its program; `resend` has left it already."""


class ListFault(LineFault):
    """Changes the answer to a list."""

    @abstractmethod
    async def answer(self, newest: Page[R], relist: Relist[R], chance: Random) -> Page[R]:
        """The page as the program gets it."""


class WatchFault(LineFault):
    """Befalls a watch for as long as it lasts."""

    @abstractmethod
    def befall(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, weather: Weather
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The events as the program gets them."""
