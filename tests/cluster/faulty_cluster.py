"""The Cluster port with a bad network in front of it: calls fail, are late, or lose their answers.

A call that its caller gave up on goes on: a request that has left cannot be called back.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from podtide.cluster.port import Cluster, Page, R, WatchEvent

T = TypeVar("T")


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


class FaultyCluster:
    """A cluster whose calls go through `faults`, and are counted."""

    def __init__(self, inner: Cluster, faults: Faults) -> None:
        self.calls: Counter[str] = Counter()
        self.watched_from: list[str] = []
        self.open_watches = 0
        self._inner = inner
        self._faults = faults
        self._under_way: set[asyncio.Task[Any]] = set()

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        return await self._carry("get", lambda: self._inner.get(kind, name, namespace))

    async def list(
        self,
        kind: type[R],
        namespace: str = "",
        *,
        fields: str = "",
        labels: str = "",
        limit: int = 0,
        more: str = "",
    ) -> Page[R]:
        return await self._carry(
            "list",
            lambda: self._inner.list(kind, namespace, fields=fields, labels=labels, limit=limit, more=more),
        )

    async def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, fields: str = "", labels: str = ""
    ) -> AsyncGenerator[WatchEvent[R], None]:
        self.calls["watch"] += 1
        self.watched_from.append(resource_version)
        events = self._inner.watch(
            kind, namespace, resource_version=resource_version, fields=fields, labels=labels
        )
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

    async def create(self, item: R, *, manager: str) -> R:
        return await self._carry("create", lambda: self._inner.create(item, manager=manager))

    async def replace(self, item: R, *, manager: str) -> R:
        return await self._carry("replace", lambda: self._inner.replace(item, manager=manager))

    async def replace_status(self, item: R, *, manager: str) -> R:
        return await self._carry("replace_status", lambda: self._inner.replace_status(item, manager=manager))

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        return await self._carry("apply", lambda: self._inner.apply(item, manager=manager, force=force))

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        await self._carry(
            "delete",
            lambda: self._inner.delete(kind, name, namespace, uid=uid, resource_version=resource_version),
        )

    async def _carry(self, call: str, make: Callable[[], Awaitable[T]]) -> T:
        self.calls[call] += 1
        under_way = asyncio.create_task(self._go_through(call, make))
        self._under_way.add(under_way)
        under_way.add_done_callback(self._arrived)
        return await asyncio.shield(under_way)

    def _arrived(self, call: "asyncio.Task[Any]") -> None:
        self._under_way.discard(call)
        if not call.cancelled():
            call.exception()  # nobody may be left to hear of it, and that is no mistake

    async def _go_through(self, call: str, make: Callable[[], Awaitable[T]]) -> T:
        await self._faults.before(call)
        answer = await make()
        await self._faults.after(call)
        return answer
