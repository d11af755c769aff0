"""A wake-up signal for a loop: it sleeps until something changed, or until a time it set itself.

However often it is woken while it works, the loop runs once more: it reads the state as it is, not the history of
changes. Changes come in bursts, so a loop that is in no hurry lets a moment pass after the first (`settle_seconds`),
and handles the whole burst at once.
"""

import asyncio

from podtide.runtime.clock import Clock


class Wakeup:
    """A signal with any number of senders and one loop that waits for it."""

    def __init__(self, clock: Clock, *, settle_seconds: float = 0.0) -> None:
        self.woken_at = clock.monotonic()
        """When `wake` was last called; at first, when this was made."""
        self._clock = clock
        self._settle_seconds = settle_seconds
        self._is_woken = False
        self._sleeper: asyncio.Future[None] | None = None
        self._settling: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Have the loop run again."""
        self.woken_at = self._clock.monotonic()
        if not self._is_woken:
            self._is_woken = True
            self._end_sleep_soon()

    async def wait(self, until: float | None = None) -> float:
        """Sleep until woken, or until that time. Returns the time: after a whole sleep, never less than `until`.

        A timer may fire a little too early. If the returned time were before `until`, the loop would wait for the same
        fraction of a second again.
        """
        now = self._clock.monotonic()
        if until is not None and until <= now:
            # A loop whose time has come must still give other tasks their turn.
            await asyncio.sleep(0)
        elif self._settle_seconds or not self._is_woken:
            await self._sleep(None if until is None else until - now)
        now = self._clock.monotonic()
        if until is not None and not self._is_woken:
            now = max(now, until)
        self._is_woken = False
        return now

    async def _sleep(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        alarm = loop.call_later(seconds, self._end_sleep) if seconds is not None else None
        if self._is_woken:
            self._end_sleep_soon()
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            for timer in (alarm, self._settling):
                if timer is not None:
                    timer.cancel()
            self._settling = None

    def _end_sleep_soon(self) -> None:
        if self._sleeper is None:
            return
        if self._settle_seconds:
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(self._settle_seconds, self._end_sleep)
        else:
            self._end_sleep()

    def _end_sleep(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
