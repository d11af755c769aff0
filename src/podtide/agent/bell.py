"""What a loop that looks at the state of things sleeps on: until something changed, or until a time it set itself.

However often the bell is rung while nobody listens, the loop looks once: it cares how things are, not how often they
changed.
"""

import asyncio

from podtide.runtime.clock import Clock


class Bell:
    """Rung by whoever changed something; waited for by one loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Have the loop look again."""
        self._rung.set()

    async def wait(self, until: float | None = None) -> float:
        """Sleep until rung, or until that time. Answers the time: after a whole sleep, never less than `until`.

        A timer may go off a hair too early. Told that it is not yet time, the loop would ask for the same hair again.
        """
        now = self._clock.monotonic()
        if until is not None and until <= now:
            # What is due already must not keep other tasks from their turn.
            await asyncio.sleep(0)
        elif until is None or self._rung.is_set():
            await self._rung.wait()
        else:
            try:
                async with asyncio.timeout(until - now):
                    await self._rung.wait()
            except TimeoutError:
                self._rung.clear()
                return max(self._clock.monotonic(), until)
        self._rung.clear()
        return self._clock.monotonic()
