"""Any calls, in any order, made twice, or by eight clients at once, to two replicas: the service is as the model says.

It is the store's own machine. What it opens are clients of services here, each with a connection of its own to the
database.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allocator.service.running import QUICK, served
from allocator.store.databases import DatabaseUnderTest
from allocator.store.test_store_machine import run
from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.store import DatabaseAllocator, StoreRules
from podtide.core.audit.invariants import Violation


class AuditedClient(HttpAllocator):
    """A client of a service whose database can be looked at."""

    def __init__(self, url: str, store: DatabaseAllocator) -> None:
        super().__init__(AllocatorAddress(url=url), timeouts=QUICK)
        self._store = store

    async def audit(self) -> tuple[Violation, ...]:
        return await self._store.audit()


class ServedDatabase(DatabaseUnderTest):
    """A database of which every replica is a service."""

    @asynccontextmanager
    async def replica(  # type: ignore[override]  # the machine needs the port and the audit, and no more
        self, rules: StoreRules | None = None, *, migrate: bool = True
    ) -> AsyncIterator[AuditedClient]:
        async with (
            super().replica(rules, migrate=migrate) as store,
            served(store) as url,
            AuditedClient(url, store) as client,
        ):
            yield client


@pytest.mark.slow
def test_the_service_on_sqlite_is_as_the_model_says(tmp_path: Path) -> None:
    run(ServedDatabase(f"sqlite:///{tmp_path}/allocator.db"), max_examples=8, steps=20)


@pytest.mark.slow
def test_the_service_on_postgresql_is_as_the_model_says(postgresql_url: str) -> None:
    run(ServedDatabase(postgresql_url), max_examples=5, steps=20)
