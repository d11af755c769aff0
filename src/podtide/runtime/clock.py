"""Time as a parameter: production reads the machine's clock, tests and simulations one that jumps.

Waiting is `asyncio.sleep` and `asyncio.timeout`, which follow the running loop's own clock; `Clock` is for
reading the time.
"""

import time
from asyncio import get_running_loop
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock and a wall clock."""

    def monotonic(self) -> float:
        """Seconds that only ever grow: for delays, deadlines and ages."""
        ...

    def wall(self) -> float:
        """Seconds since 1970: for timestamps that people and other programs read. It may jump."""
        ...


_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's plain monotonic clock stands still while the machine sleeps: a leader that wakes up would think it leads."""


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds since the machine started, those it slept included."""
        return time.clock_gettime(_SINCE_BOOT)

    def wall(self) -> float:
        """Seconds of the machine's wall clock."""
        return time.time()


class LoopClock:
    """The running loop's clock, for loops whose time is virtual; its wall clock starts at `epoch`.

    A clock made while a loop runs stays with that loop: looking the loop up at every call would cost as much as all
    else.
    """

    def __init__(self, epoch: float = 1_750_000_000.0) -> None:
        self._epoch = epoch
        try:
            self._time = get_running_loop().time
        except RuntimeError:
            self._time = _time_of_whichever_runs

    def monotonic(self) -> float:
        """Seconds on the loop's clock."""
        return self._time()

    def wall(self) -> float:
        """`epoch` plus what has passed on the loop's clock."""
        return self._epoch + self._time()


def _time_of_whichever_runs() -> float:
    return get_running_loop().time()
