"""The Cluster port with a bad network in front of it: calls fail, are late, or lose their answers.

A call that its caller gave up on goes on: a request that has left cannot be called back.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, T, WatchRequest
from podtide.cluster.port import Cluster, R, WatchEvent


class CloseWatch(Exception):
    """Raised by a fault: the server ends this watch in good order."""


class Faults(Protocol):
    """What happens to calls. `call` is the method's name, or "event" for each event of a watch."""

    async def before(self, call: str) -> None:
        """Wait, or raise: then the call had no effect."""
        ...

    async def after(self, call: str) -> None:
        """Wait, or raise: then the call had its effect, and the caller does not know."""
        ...


Step = Exception | float | None
"""What befalls one call: it fails, it takes some seconds, or nothing."""


class Script:
    """Faults by the number of the call: the first step of a list is for the first call, and so on."""

    def __init__(self, **steps: list[Step]) -> None:
        self.steps: defaultdict[str, list[Step]] = defaultdict(list, steps)
        self.lost_answers: defaultdict[str, list[Step]] = defaultdict(list)

    async def before(self, call: str) -> None:
        await self._take(self.steps[call])

    async def after(self, call: str) -> None:
        await self._take(self.lost_answers[call])

    async def _take(self, steps: list[Step]) -> None:
        step = steps.pop(0) if steps else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            await asyncio.sleep(step)


class FaultyCluster(ClusterInterceptor):
    """A cluster whose calls go through `faults`, and are counted."""

    def __init__(self, inner: Cluster, faults: Faults) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()
        self.watched_from: list[str] = []
        self.open_watches = 0
        self._faults = faults
        self._under_way: set[asyncio.Task[Any]] = set()

    async def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        self.calls["watch"] += 1
        self.watched_from.append(request.resource_version)
        events = request.send(self._inner)
        self.open_watches += 1
        try:
            await self._faults.before("watch")
            async with aclosing(events):
                async for event in events:
                    await self._faults.before("event")
                    yield event
        except CloseWatch:
            return
        finally:
            self.open_watches -= 1

    async def intercept(self, request: ClusterRequest[T]) -> T:
        self.calls[request.verb] += 1
        under_way = asyncio.create_task(self._go_through(request))
        self._under_way.add(under_way)
        under_way.add_done_callback(self._arrived)
        return await asyncio.shield(under_way)

    def _arrived(self, call: "asyncio.Task[Any]") -> None:
        self._under_way.discard(call)
        if not call.cancelled():
            call.exception()  # nobody may be left to hear of it, and that is no mistake

    async def _go_through(self, request: ClusterRequest[T]) -> T:
        await self._faults.before(request.verb)
        answer = await request.send(self._inner)
        await self._faults.after(request.verb)
        return answer
