"""The allocators that keep the contract: in this process on either database, and over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from allocator.contract.harness import RULES, AllocatorUnderTest, HandClock, OpenAllocator
from allocator.service.shared_application import shared_application
from allocator.store.databases import empty
from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.store import InlineExecutor, open_allocator

ALLOCATORS = [
    "on SQLite",
    pytest.param("on PostgreSQL", marks=pytest.mark.real_time),
    pytest.param("over HTTP", marks=pytest.mark.real_time),
]


@pytest.fixture(params=ALLOCATORS, name="open_allocator")
def opens_an_allocator(request: pytest.FixtureRequest) -> OpenAllocator:
    """Opens an allocator without subnets."""
    on_postgresql = request.param == "on PostgreSQL"
    url = request.getfixturevalue("postgresql_url") if on_postgresql else "sqlite:///:memory:"

    @asynccontextmanager
    async def opened() -> AsyncIterator[AllocatorUnderTest]:
        if on_postgresql:
            await empty(url)
        clock = HandClock()
        async with await open_allocator(
            url, clock=clock, rules=RULES, executor=InlineExecutor(), migrate=True
        ) as store:
            if request.param != "over HTTP":
                yield AllocatorUnderTest(store, clock, store.sample)
            else:
                async with (
                    shared_application().served(store) as service,
                    HttpAllocator(AllocatorAddress(url=service)) as client,
                ):
                    yield AllocatorUnderTest(client, clock, store.sample)
            assert await store.audit() == ()

    return opened
