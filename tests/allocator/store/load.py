"""Eight clients that put, change and delete containers until they are killed, telling of every answer they got."""

import asyncio
from itertools import count
from multiprocessing.connection import Connection
from random import Random

from allocator.store.wishes import named, wish
from podtide.allocator.errors import SubnetFull
from podtide.allocator.store import DatabaseAllocator, open_allocator
from podtide.runtime.clock import SystemClock

CLIENTS = 8


def run(url: str, round_: int, answers: Connection) -> None:
    """For `multiprocessing`: never returns."""
    asyncio.run(_run(url, round_, answers))


async def _run(url: str, round_: int, answers: Connection) -> None:
    async with (
        await open_allocator(url, clock=SystemClock()) as allocator,
        asyncio.TaskGroup() as group,
    ):
        for number in range(CLIENTS):
            group.create_task(_client(allocator, f"{round_}-{number}", answers))


async def _client(allocator: DatabaseAllocator, name: str, answers: Connection) -> None:
    """Each container is made, changed twice and, one time in three, deleted. What is answered is told: id and version."""
    randomness = Random(name)
    for number in count():
        id_ = f"{name}-{number}"
        release: tuple[str, ...] = ()
        for generation in range(3):
            try:
                container = await allocator.put_container(
                    wish(id_, randomness.randrange(24), generation, release=release)
                )
            except SubnetFull:
                break
            answers.send((id_, container.version))
            held = list(named(container))
            release = tuple(randomness.sample(held, len(held) // 2))
        if randomness.random() < 1 / 3:
            await allocator.delete_container(id_, cluster="east")
            answers.send((id_, None))
