"""Replicas of the allocator on one database: each call is carried out by one of them, and any of them may be killed.

A call that awaits its database several times, like a deletion, ends wherever it is when its replica is killed, and what
was carried out last may be in the database all the same. Its caller repeats it, and another replica answers.
"""

from collections.abc import Awaitable, Callable
from random import Random

from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation, T
from podtide.allocator.store import DatabaseAllocator
from podtide.simulation.world.killable_database import KillableDatabase

Opened = tuple[KillableDatabase, DatabaseAllocator]
"""A replica, and the database as it has it open."""


class AllocatorReplicas(AllocatorInterceptor):
    """The replicas as their callers see them: one allocator. Which of them carries out a call is drawn."""

    def __init__(
        self,
        database: DatabaseAllocator,
        open_: Callable[[], Opened],
        finish: Callable[[Awaitable[None]], Awaitable[None]],
        chance: Random,
    ) -> None:
        """`database` is no replica and never killed: people look at it. `finish` awaits the end of a cluster's report."""
        super().__init__(database)
        self._open = open_
        self._finish = finish
        self._chance = chance
        self._opened: dict[int, Opened] = {}

    @property
    def running(self) -> list[int]:
        """The numbers of the replicas that run."""
        return [number for number, (database, _replica) in self._opened.items() if not database.is_killed]

    async def start(self, number: int) -> None:
        """Start a replica, in place of what is left of one that was killed."""
        await self.end(number)
        database, replica = self._open()
        await replica.examine()
        self._opened[number] = database, replica

    def kill_in(self, moments: int, number: int) -> None:
        """Kill a replica after so many moments in which something is carried out."""
        self._opened[number][0].kill_in(moments)

    async def end(self, number: int) -> None:
        """End a replica, with whatever is in flight."""
        if number in self._opened:
            database, _replica = self._opened.pop(number)
            database.kill_in(0)
            await database.close()

    async def end_all(self) -> None:
        """End all replicas."""
        for number in tuple(self._opened):
            await self.end(number)

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Let one of the replicas carry out the call."""
        if not (running := self.running):
            raise AllocatorUnavailable("no replica of the allocator runs")
        _database, replica = self._opened[self._chance.choice(running)]
        return await request.send(replica)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """Finish a cluster's report."""
        await self._finish(super().finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery))
