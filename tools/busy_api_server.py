"""An API server as a large cluster has it, on virtual time: every call takes a while, and only so many go on at once.

Benchmarks put the programs that they compare on it, so that what differs is due to the programs. Whatever they ask of it
is written down in one `Traffic`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import NamedTuple

from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, T, WatchRequest
from podtide.cluster.port import Page, R, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.codec import encode
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness

CALL_SECONDS = 0.01
BYTES_PER_SECOND = 33_000_000
"""A list of 79 MB took a real API server 2.4 seconds (design T11)."""
READS_AT_ONCE, WRITES_AT_ONCE = 400, 200
"""What a kube-apiserver works on at a time by default."""
_EVENTS_KEPT = 1_000_000
_READS = {"get", "list"}


class Call(NamedTuple):
    """Who asked for what."""

    program: str
    verb: str
    kind: str

    @property
    def is_write(self) -> bool:
        """Whether it is to change something."""
        return self.verb not in _READS


class Subject(NamedTuple):
    """Whose bytes these are, and about what."""

    program: str
    kind: str


class Traffic:
    """What programs asked of the API server, and the bytes that went to and fro for it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        """In the order in which they were made."""
        self.written: Counter[Subject] = Counter()
        """Bytes of the objects in creates and replaces."""
        self.watched: Counter[Subject] = Counter()
        """Bytes of the objects in events."""

    def clear(self) -> None:
        """Count from here on."""
        self.calls.clear()
        self.written.clear()
        self.watched.clear()

    def writes(self, program: str) -> Counter[str]:
        """How often a program wrote, by kind."""
        return self._kinds(program, writes=True)

    def reads(self, program: str) -> Counter[str]:
        """How often it read, by kind."""
        return self._kinds(program, writes=False)

    def written_by(self, program: str) -> Counter[str]:
        """The bytes that it wrote, by kind."""
        return _of(program, self.written)

    def watched_by(self, program: str) -> Counter[str]:
        """The bytes that events brought to it, by kind."""
        return _of(program, self.watched)

    def _kinds(self, program: str, *, writes: bool) -> Counter[str]:
        return Counter(
            call.kind for call in self.calls if call.program == program and call.is_write is writes
        )


class BusyApiServer:
    """The embedded cluster behind an API server's latency, shared by all who call it."""

    def __init__(self, call_seconds: float = CALL_SECONDS) -> None:
        self._call_seconds = call_seconds
        self.cluster = EmbeddedCluster(
            clock=LoopClock(), randomness=seeded_randomness(1), limits=ApiServerLimits(history=_EVENTS_KEPT)
        )
        self.traffic = Traffic()
        self._reads, self._writes = asyncio.Semaphore(READS_AT_ONCE), asyncio.Semaphore(WRITES_AT_ONCE)

    def line(self, program: str) -> "CountedLine":
        """A way to it for a program."""
        return CountedLine(self, program)

    async def work(self, call: Callable[[], Awaitable[T]], *, writes: bool) -> T:
        """Carry out a call when its turn has come; a large answer keeps the server busy for longer."""
        async with self._writes if writes else self._reads:
            await asyncio.sleep(self._call_seconds)
            answer = await call()
            await asyncio.sleep(_size(answer) / BYTES_PER_SECOND)
            return answer


class CountedLine(ClusterInterceptor):
    """A program's way to the API server, on which everything is counted."""

    def __init__(self, server: BusyApiServer, program: str) -> None:
        super().__init__(server.cluster)
        self._server = server
        self._traffic = server.traffic
        self._program = program

    async def intercept(self, request: ClusterRequest[T]) -> T:
        """Count the request and the bytes of its object, and let the server work on it."""
        made = Call(self._program, request.verb, request.kind.api.kind)
        if request.item is not None:
            self._traffic.written[self._subject(request.kind)] += len(encode(request.item))
        self._traffic.calls.append(made)
        return await self._server.work(lambda: request.send(self._inner), writes=made.is_write)

    async def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        """Count the bytes of the objects in the events."""
        async with aclosing(request.send(self._inner)) as events:
            async for event in events:
                if event.item is not None:
                    self._traffic.watched[self._subject(request.kind)] += len(encode(event.item))
                yield event

    def _subject(self, kind: type[Resource]) -> Subject:
        return Subject(self._program, kind.api.kind)


def _size(answer: object) -> int:
    match answer:
        case Resource():
            return len(encode(answer))
        case Page(items=items):
            return sum(map(_size, items))
        case _:
            return 0


def _of(program: str, sizes: Counter[Subject]) -> Counter[str]:
    return Counter({of.kind: size for of, size in sizes.items() if of.program == program})
