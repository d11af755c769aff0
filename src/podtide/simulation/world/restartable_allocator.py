"""An allocator that can be restarted on its database, which is a file as in production."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.port import Allocator
from podtide.allocator.store import DatabaseAllocator, StoreRules
from podtide.allocator.store.backup import backup
from podtide.allocator.store.migration import SQLITE, check_schema, migrate
from podtide.runtime.clock import Clock
from podtide.simulation.world.allocator_replicas import AllocatorReplicas
from podtide.simulation.world.killable_database import Commits, KillableDatabase

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory is made below it
"""A directory in memory, where there is one: what a power cut does to SQLite is not tested here."""

_REPLICAS = 2

Recovered = Callable[[Sequence[AllocatedContainer]], None]
"""Called with all containers."""


class RestartableAllocator(DatabaseAllocator):
    """The same allocator for its callers, before and after restarts."""

    def __init__(
        self, path: Path, *, clock: Clock, rules: StoreRules, chance_of_replicas: Random | None = None
    ) -> None:
        """`chance_of_replicas` draws which replica carries out a call; None where there is one process."""
        self._open = partial(KillableDatabase, str(path), Commits(), clock=clock, rules=rules)
        super().__init__(self._open(), clock=clock, rules=rules)
        chance = chance_of_replicas
        self.replicas = AllocatorReplicas(self, self._open_replica, self.finish, chance) if chance else None
        """What programs call; None where they call this one."""
        self._path = path
        self._backup = path.with_name("backup.db")
        self.is_away = False
        """Whether its database is being replaced, so that it cannot answer."""
        self.on_recovered = list[Recovered]()
        """Called with all containers when a restored store has recovered and grants again."""

    def _open_replica(self) -> tuple[KillableDatabase, DatabaseAllocator]:
        database = self._open()
        return database, DatabaseAllocator(database, clock=self._clock, rules=self._rules)

    async def prepare(self) -> None:
        """Create the tables in the file."""
        await self._database.write(migrate(self._database.name, SQLITE))
        await self.examine()
        await self._start_replicas()

    @property
    def front(self) -> Allocator:
        """What programs call."""
        return self.replicas or self

    async def _start_replicas(self) -> None:
        if self.replicas is not None:
            for number in range(_REPLICAS):
                await self.replicas.start(number)

    async def end_replicas(self) -> None:
        """End the replicas, if there are any."""
        if self.replicas is not None:
            await self.replicas.end_all()

    async def restart(self) -> None:
        """Close the database and open it again, as another process would. Transactions in flight are finished first."""
        await self.end_replicas()
        ending, self._database = self._database, self._open()
        await ending.close()
        await self._database.read(check_schema(self._database.name, SQLITE))
        await self.examine()
        await self._start_replicas()

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
        await self.end_replicas()
        await self._database.close()
        self._put_back()
        self._database = self._open()
        await self.examine()
        await self._start_replicas()
        self.is_away = False

    def _put_back(self) -> None:
        for leftover in (f"{self._path}-wal", f"{self._path}-shm"):
            Path(leftover).unlink(missing_ok=True)
        self._backup.rename(self._path)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """Finish a cluster's report, and call the listeners if the store has recovered by that."""
        await self.finish(super().finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery))

    async def finish(self, report: Awaitable[None]) -> None:
        """Await the end of a cluster's report, and call the listeners if the store has recovered by that."""
        before = (await self.list_clusters()).recovering
        await report
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
    *, clock: Clock, rules: StoreRules, chance_of_replicas: Random | None = None
) -> AsyncIterator[RestartableAllocator]:
    """A new allocator, on a file that is deleted afterwards."""
    with TemporaryDirectory(prefix="podtide-", dir=_IN_MEMORY) as directory:
        path = Path(directory) / "allocator.db"
        async with RestartableAllocator(
            path, clock=clock, rules=rules, chance_of_replicas=chance_of_replicas
        ) as opened:
            await opened.prepare()
            try:
                yield opened
            finally:
                await opened.end_replicas()
