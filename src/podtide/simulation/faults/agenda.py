"""What is going to happen in a run, and when: mishaps at their times, and the repair of what is broken for a while.

All of it happens one after the other, in all clusters: a machine that is being restarted is not replaced at the same
moment. What is broken for a while is repaired later, or when the faults stop, whichever comes first.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

from podtide.runtime.clock import Clock

Act = Callable[[], Awaitable[None]]


class Agenda:
    """The planned acts, by their times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._acts: list[tuple[float, int, Act]] = []
        self._noted = 0

    def plan(self, seconds: float, act: Act) -> None:
        """Plan an act for so many seconds from now, or for when the faults stop if that is earlier."""
        self._noted += 1
        heapq.heappush(self._acts, (self._clock.monotonic() + seconds, self._noted, act))

    async def play_until(self, end: float) -> None:
        """Carry out the planned acts, each at its time, until `end`."""
        while self._acts and self._acts[0][0] < end:
            due, _number, act = heapq.heappop(self._acts)
            await asyncio.sleep(max(0.0, due - self._clock.monotonic()))
            await act()
        await asyncio.sleep(max(0.0, end - self._clock.monotonic()))

    async def mend_everything(self) -> None:
        """Carry out at once what is still planned: nothing stays broken."""
        while self._acts:
            _due, _number, act = heapq.heappop(self._acts)
            await act()
