"""Group commit: calls that wait at the same moment share one transaction, and so one wait for the disk.

While one group is being committed, new calls gather for the next; no call waits for others to come. Under load groups
grow and the cost of a commit is shared; a single caller is served at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")


class GroupCommit(Generic[Item]):
    """Groups items that wait at the same moment; `commit` returns for each item its answer, or an exception to raise."""

    def __init__(self, commit: Callable[[Sequence[Item]], Awaitable[Sequence[object]]], largest: int) -> None:
        self._commit = commit
        self._largest = largest
        self._waiting: list[tuple[Item, asyncio.Future[object]]] = []
        self._pump: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight."""
        return self._pump is None

    async def submit(self, item: Item) -> object:
        """The item's answer, once its group is committed. Giving up the wait does not undo the call."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run())
        return await future

    async def finish(self) -> None:
        """Wait until all that was submitted is answered."""
        if self._pump is not None:
            await asyncio.shield(self._pump)

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[: self._largest], self._waiting[self._largest :]
                await self._carry_out(group)
        finally:
            self._pump = None

    async def _carry_out(self, group: Sequence[tuple[Item, asyncio.Future[object]]]) -> None:
        try:
            outcomes = await self._commit([item for item, _future in group])
        except Exception as error:  # noqa: BLE001 - it is raised where it belongs: for those who wait
            outcomes = [error] * len(group)
        for (_item, future), outcome in zip(group, outcomes, strict=True):
            if future.done():  # the caller went away
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
