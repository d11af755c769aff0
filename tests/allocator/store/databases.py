"""A database that tests open allocators on, as often as they like: each is a replica of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from podtide.allocator.store import (
    DatabaseAllocator,
    InlineExecutor,
    StoreRules,
    ThreadExecutor,
    open_allocator,
)
from podtide.runtime.clock import SystemClock

_CONTENTS = (
    "networks, subnets, containers, grants, chunks, resting, samples, alike, bounds, clusters, quarantines"
)
_AS_NEW = "UPDATE store SET removed_sequences = 0, recovery = 0, recovering_since = 0, reason = ''"


async def empty(postgresql_url: str) -> None:
    """Let the database have podtide's tables, and nothing in them."""
    async with await open_allocator(postgresql_url, clock=SystemClock(), migrate=True):
        connection = await asyncpg.connect(postgresql_url)
        await connection.execute(f"TRUNCATE {_CONTENTS}")
        await connection.execute(_AS_NEW)
        await connection.close()


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_750_000_000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


class DatabaseUnderTest:
    """Where it is, and what time it is there."""

    def __init__(self, url: str, *, in_a_thread: bool = True) -> None:
        self.url = url
        self.clock = HandClock()
        self._in_a_thread = in_a_thread

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    async def empty(self) -> None:
        """Forget everything in it."""
        if self.is_sqlite:
            for file in Path(self.url.removeprefix("sqlite:///")).parent.glob("allocator.db*"):
                file.unlink()
        else:
            await empty(self.url)

    @asynccontextmanager
    async def replica(
        self, rules: StoreRules | None = None, *, migrate: bool = True
    ) -> AsyncIterator[DatabaseAllocator]:
        """An allocator on the database as it stands."""
        executor = ThreadExecutor() if self._in_a_thread else InlineExecutor()
        async with await open_allocator(
            self.url, clock=self.clock, rules=rules, executor=executor, migrate=migrate
        ) as allocator:
            yield allocator

    @asynccontextmanager
    async def allocator(self, rules: StoreRules | None = None) -> AsyncIterator[DatabaseAllocator]:
        """An allocator on the database, without anything in it."""
        await self.empty()
        async with self.replica(rules) as allocator:
            yield allocator
            assert await allocator.audit() == ()
