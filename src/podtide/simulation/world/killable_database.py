"""The allocator's database as one process has it open, which may be killed; others go on with the same file."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store import InlineExecutor, StoreRules
from podtide.allocator.store.container_writes import SubnetOperation
from podtide.allocator.store.drivers.sqlite import SqliteDatabase
from podtide.allocator.store.script import Script
from podtide.runtime.clock import Clock

T = TypeVar("T")


class Commits:
    """Lets calls return in the order in which they were carried out, by whichever process.

    Calls share transactions, and a loop with a drawn order resumes their callers in any order. Who records answers would
    see an address granted before it was given back.
    """

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None
        self._turns: dict[int, tuple[asyncio.Future[None] | None, asyncio.Future[None]] | None] = {}
        """Of each call that has a caller, what it waits for and what waits for it; None until it is carried out."""

    def asked(self, call: object) -> None:
        """A call is made, and somebody waits for its answer."""
        self._turns[id(call)] = None

    def carried_out(self, call: object) -> None:
        """A call was carried out."""
        if id(call) in self._turns:
            before, self._last = self._last, asyncio.get_running_loop().create_future()
            self._turns[id(call)] = before, self._last

    async def turn(self, call: object) -> None:
        """Wait until all calls that were carried out before have returned. The caller then goes away."""
        if (turn := self._turns.pop(id(call))) is None:
            return
        before, returned = turn
        try:
            if before is not None and not before.done():
                await asyncio.wait({before})
        finally:
            if before is None or before.done():
                returned.set_result(None)
            else:  # the caller went away: who comes next waits in its place
                before.add_done_callback(lambda _before: returned.set_result(None))


class KillableDatabase(SqliteDatabase):
    """A connection that, once its process is killed, carries out nothing and answers nothing, not even what is carried out."""

    def __init__(self, path: str, commits: Commits, *, clock: Clock, rules: StoreRules) -> None:
        super().__init__(path, clock=clock, rules=rules, executor=InlineExecutor())
        self._moments_left = math.inf
        self._commits = commits

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed."""
        return self._moments_left <= 0

    def kill_in(self, moments: int) -> None:
        """Kill its process after so many moments, each just before or just after something is carried out."""
        self._moments_left = moments

    async def call(self, network: str, subnet: str, call: SubnetOperation[T]) -> T:
        """Carry out an operation together with all others that wait."""
        self._commits.asked(call)
        try:
            answer = await super().call(network, subnet, call)
        finally:
            await self._commits.turn(call)
        self._pass_moment()
        return answer

    async def _run(self, begin: str, script: Callable[[float], Script[T]]) -> T:
        self._pass_moment()
        answer = await super()._run(begin, script)
        self._pass_moment()
        return answer

    async def _commit(self, calls: Sequence[Any]) -> list[object]:
        self._pass_moment()
        outcomes = await super()._commit(calls)
        for each in calls:
            self._commits.carried_out(each.call)
        return outcomes

    def _pass_moment(self) -> None:
        self._moments_left -= 1
        if self.is_killed:
            raise AllocatorUnavailable(f"the allocator that had {self.name} open was killed")
