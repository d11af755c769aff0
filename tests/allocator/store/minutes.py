"""A program that lives minute after minute, until it is killed: a node gets an address more, and the use is written down."""

import asyncio
from multiprocessing.connection import Connection

from allocator.store.databases import HandClock
from allocator.store.wishes import wish
from podtide.allocator.store import DatabaseAllocator, open_allocator
from podtide.core.subnet.statement import StatedDemand

MIDNIGHT = 1_750_032_000.0
AT_MOST = 60
"""Minutes of one life: all lives together are within a day."""


def run(url: str, first: int, answers: Connection) -> None:
    """For `multiprocessing`."""
    asyncio.run(_run(url, first, answers))


async def _run(url: str, first: int, answers: Connection) -> None:
    clock = HandClock()
    clock.now = MIDNIGHT + 60 * first
    async with await open_allocator(url, clock=clock) as allocator:
        for minute in range(first, first + AT_MOST):
            clock.now = MIDNIGHT + 60 * minute
            await live(allocator, minute)
            answers.send(minute)


async def live(allocator: DatabaseAllocator, minute: int) -> None:
    """What happens at the beginning of a minute: the node has `minute` addresses for as many pods, and itself one."""
    stated = StatedDemand(batch=16, high=minute)
    await allocator.put_container(wish("a", minute, minute + 1, stated=stated))
    await allocator.sample()
