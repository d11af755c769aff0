"""A call that is due later on the running loop, at most one at a time.

The embedded cluster's background work (bookmarks, garbage collection) is set off by writes and ends by itself. An idle
cluster has no timer running, so that a simulation's clock can jump over idle hours and a deadlock is seen as one.
"""

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls `ring` once per `set`, however often it is set before."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: asyncio.TimerHandle | None = None

    def set(self, delay_seconds: float) -> None:
        """Ring after that time, unless it is set already. What an earlier, ended loop still owed is forgotten."""
        if self._due is None or self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._due = self._loop.call_later(delay_seconds, self._go_off)

    def cancel(self) -> None:
        """Do not ring."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _go_off(self) -> None:
        self._due = None
        self._ring()
