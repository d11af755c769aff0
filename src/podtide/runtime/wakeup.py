"""What a loop that looks at the state of things sleeps on: until something changed, or until a time it set itself.

However often the bell is rung while nobody listens, the loop looks once: it cares how things are, not how often they
changed. Changes come in bursts, so a loop that is in no hurry lets a moment pass after the first (`settle_seconds`),
and looks once at all that came of it.
"""

import asyncio

from podtide.runtime.clock import Clock


class Bell:
    """A signal that one loop waits for, and that any change rings."""

    def __init__(self, clock: Clock, *, settle_seconds: float = 0.0) -> None:
        self.rung_at = clock.monotonic()
        """When it was last rung, or made."""
        self._clock = clock
        self._settle_seconds = settle_seconds
        self._is_rung = False
        self._sleeper: asyncio.Future[None] | None = None
        self._settling: asyncio.TimerHandle | None = None

    def ring(self) -> None:
        """Wake the loop."""
        self.rung_at = self._clock.monotonic()
        if not self._is_rung:
            self._is_rung = True
            self._wake_soon()

    async def wait(self, until: float | None = None) -> float:
        """Sleep until rung, or until that time. Returns the time: after a whole sleep, never less than `until`.

        A timer may fire slightly too early. If it returned the true time then, the loop would sleep again for the
        difference.
        """
        now = self._clock.monotonic()
        if until is not None and until <= now:
            # What is due already must not keep other tasks from their turn.
            await asyncio.sleep(0)
        elif self._settle_seconds or not self._is_rung:
            await self._sleep(None if until is None else until - now)
        now = self._clock.monotonic()
        if until is not None and not self._is_rung:
            now = max(now, until)
        self._is_rung = False
        return now

    async def _sleep(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        alarm = loop.call_later(seconds, self._wake) if seconds is not None else None
        if self._is_rung:
            self._wake_soon()
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            for timer in (alarm, self._settling):
                if timer is not None:
                    timer.cancel()
            self._settling = None

    def _wake_soon(self) -> None:
        if self._sleeper is None:
            return
        if self._settle_seconds:
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(self._settle_seconds, self._wake)
        else:
            self._wake()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
