"""An allocator that can be restarted on its database, which is a file as in production."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from podtide.allocator.store import DatabaseAllocator, InlineExecutor, Rules
from podtide.allocator.store.migrating import SQLITE, check_schema, migrate
from podtide.allocator.store.sqlite import SqliteDatabase
from podtide.runtime.clock import Clock

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory is made below it
"""A disk that costs nothing, where there is one: what a power cut does to SQLite is not ours to try."""


class RestartableAllocator(DatabaseAllocator):
    """The allocator as its callers know it, whichever process it is."""

    def __init__(self, path: Path, *, clock: Clock, rules: Rules) -> None:
        super().__init__(_opened(path, clock, rules), clock=clock, rules=rules)
        self._path = path

    async def prepare(self) -> None:
        """Give the file its tables."""
        await self._database.write(migrate(self._database.name, SQLITE))

    async def restart(self) -> None:
        """End, and begin again with nothing but what is in the file. What is under way is finished first."""
        ending, self._database = self._database, _opened(self._path, self._clock, self._rules)
        await ending.close()
        await self._database.read(check_schema(self._database.name, SQLITE))


@asynccontextmanager
async def open_restartable_allocator(*, clock: Clock, rules: Rules) -> AsyncIterator[RestartableAllocator]:
    """A new allocator, on a file that goes with it."""
    with TemporaryDirectory(prefix="podtide-", dir=_IN_MEMORY) as directory:
        async with RestartableAllocator(Path(directory) / "allocator.db", clock=clock, rules=rules) as opened:
            await opened.prepare()
            yield opened


def _opened(path: Path, clock: Clock, rules: Rules) -> SqliteDatabase:
    return SqliteDatabase(str(path), clock=clock, rules=rules, executor=InlineExecutor())
