"""An allocator that can be restarted on its database, which is a file as in production."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.store import DatabaseAllocator, InlineExecutor, StoreRules
from podtide.allocator.store.backup import backup
from podtide.allocator.store.container_writes import SubnetOperation
from podtide.allocator.store.drivers.sqlite import SqliteDatabase
from podtide.allocator.store.migration import SQLITE, check_schema, migrate
from podtide.runtime.clock import Clock

T = TypeVar("T")

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory is made below it
"""A directory in memory, where there is one: what a power cut does to SQLite is not tested here."""

Recovered = Callable[[Sequence[AllocatedContainer]], None]
"""Called with all containers."""


class _InOrder(SqliteDatabase):
    """Calls return in the order in which they were made, which is that in which they are carried out.

    Calls share a transaction, and a loop with a drawn order resumes their callers in any order. Who records answers would
    see an address granted before it was given back.
    """

    _last: asyncio.Future[None] | None = None

    async def call(self, network: str, subnet: str, call: SubnetOperation[T]) -> T:
        before, answered = self._last, asyncio.get_running_loop().create_future()
        self._last = answered
        try:
            return await super().call(network, subnet, call)
        finally:
            try:
                if before is not None and not before.done():
                    await asyncio.wait({before})
            finally:
                if before is None or before.done():
                    answered.set_result(None)
                else:  # the caller went away: who comes next waits in its place
                    before.add_done_callback(lambda _before: answered.set_result(None))


class RestartableAllocator(DatabaseAllocator):
    """The same allocator for its callers, before and after restarts."""

    def __init__(self, path: Path, *, clock: Clock, rules: StoreRules) -> None:
        super().__init__(_opened(path, clock, rules), clock=clock, rules=rules)
        self._path = path
        self._backup = path.with_name("backup.db")
        self.is_away = False
        """Whether its database is being replaced, so that it cannot answer."""
        self.on_recovered = list[Recovered]()
        """Called with all containers when a restored store has recovered and grants again."""

    async def prepare(self) -> None:
        """Create the tables in the file."""
        await self._database.write(migrate(self._database.name, SQLITE))
        await self.examine()

    async def restart(self) -> None:
        """Close the database and open it again, as another process would. Transactions in flight are finished first."""
        ending, self._database = self._database, _opened(self._path, self._clock, self._rules)
        await ending.close()
        await self._database.read(check_schema(self._database.name, SQLITE))
        await self.examine()

    @property
    def has_backup(self) -> bool:
        """Whether there is a backup that is not restored yet."""
        return self._backup.exists()

    def take_backup(self) -> None:
        """Copy the database."""
        backup(str(self._path), self._backup)

    async def restore_backup(self) -> None:
        """Replace the database by the backup; the mark file beside it stays as it was."""
        self.is_away = True
        await self._database.close()
        self._put_back()
        self._database = _opened(self._path, self._clock, self._rules)
        await self.examine()
        self.is_away = False

    def _put_back(self) -> None:
        for leftover in (f"{self._path}-wal", f"{self._path}-shm"):
            Path(leftover).unlink(missing_ok=True)
        self._backup.rename(self._path)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """Finish a cluster's report, and call the listeners if the store has recovered by that."""
        before = (await self.list_clusters()).recovering
        await super().finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery)
        if before and not (await self.list_clusters()).recovering:
            page = await self.list_containers(limit=1_000)
            for listener in self.on_recovered:
                listener(page.items)

    async def knows(self, cluster: str) -> bool:
        """Whether a cluster's name is bound to a uid."""
        return not self.is_away and any(
            each.name == cluster and each.uid for each in (await self.list_clusters()).clusters
        )

    async def is_of_the_past(self) -> bool:
        """Whether it was restored and still recovers: it lacks some of what nodes hold."""
        return self.is_away or bool((await self.list_clusters()).recovering)


@asynccontextmanager
async def open_restartable_allocator(
    *, clock: Clock, rules: StoreRules
) -> AsyncIterator[RestartableAllocator]:
    """A new allocator, on a file that is deleted afterwards."""
    with TemporaryDirectory(prefix="podtide-", dir=_IN_MEMORY) as directory:
        async with RestartableAllocator(Path(directory) / "allocator.db", clock=clock, rules=rules) as opened:
            await opened.prepare()
            yield opened


def _opened(path: Path, clock: Clock, rules: StoreRules) -> SqliteDatabase:
    return _InOrder(str(path), clock=clock, rules=rules, executor=InlineExecutor())
