"""An API server as a large cluster has it, on virtual time: every call takes a while, and only so many go on at once.

Benchmarks put the programs that they compare on it, so that what differs is due to the programs.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

from podtide.cluster.embedded import EmbeddedCluster, Limits
from podtide.cluster.port import Page, R, WatchEvent
from podtide.resources.codec import encode
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness

CALL_SECONDS = 0.01
READS_AT_ONCE, WRITES_AT_ONCE = 400, 200
"""What a kube-apiserver works on at a time by default."""
_EVENTS_KEPT = 1_000_000

T = TypeVar("T")


class BusyApiServer:
    """The embedded cluster behind an API server's latency, shared by all who call it."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(
            clock=LoopClock(), randomness=seeded_randomness(1), limits=Limits(history=_EVENTS_KEPT)
        )
        self._reads, self._writes = asyncio.Semaphore(READS_AT_ONCE), asyncio.Semaphore(WRITES_AT_ONCE)

    async def work(self, call: Awaitable[T], *, writes: bool) -> T:
        """Carry out a call when its turn has come."""
        async with self._writes if writes else self._reads:
            await asyncio.sleep(CALL_SECONDS)
            return await call


class CountedLine:
    """A program's way to the API server, on which calls and the bytes of watches are counted."""

    def __init__(
        self, server: BusyApiServer, calls: Counter[str], traffic: Counter[str], program: str
    ) -> None:
        self._server = server
        self._inner = server.cluster
        self._calls = calls
        self._traffic = traffic
        self._program = program

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """See `Cluster`."""
        return await self._read(self._inner.get(kind, name, namespace))

    async def list(  # noqa: PLR0913 - the port's
        self,
        kind: type[R],
        namespace: str = "",
        *,
        fields: str = "",
        labels: str = "",
        limit: int = 0,
        more: str = "",
    ) -> Page[R]:
        """See `Cluster`."""
        listing = self._inner.list(kind, namespace, fields=fields, labels=labels, limit=limit, more=more)
        return await self._read(listing)

    async def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, fields: str = "", labels: str = ""
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """See `Cluster`."""
        events = self._inner.watch(
            kind, namespace, resource_version=resource_version, fields=fields, labels=labels
        )
        async with aclosing(events):
            async for event in events:
                if event.item is not None:
                    self._traffic[self._program] += len(encode(event.item))
                yield event

    async def create(self, item: R, *, manager: str) -> R:
        """See `Cluster`."""
        return await self._write(self._inner.create(item, manager=manager))

    async def replace(self, item: R, *, manager: str) -> R:
        """See `Cluster`."""
        return await self._write(self._inner.replace(item, manager=manager))

    async def replace_status(self, item: R, *, manager: str) -> R:
        """See `Cluster`."""
        return await self._write(self._inner.replace_status(item, manager=manager))

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """See `Cluster`."""
        return await self._write(self._inner.apply(item, manager=manager, force=force))

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See `Cluster`."""
        deletion = self._inner.delete(kind, name, namespace, uid=uid, resource_version=resource_version)
        await self._write(deletion)

    async def _read(self, call: Awaitable[T]) -> T:
        self._calls[f"{self._program} reads"] += 1
        return await self._server.work(call, writes=False)

    async def _write(self, call: Awaitable[T]) -> T:
        self._calls[f"{self._program} writes"] += 1
        return await self._server.work(call, writes=True)


def percentile(values: list[float], part: float) -> float:
    """The value that this part of all does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
