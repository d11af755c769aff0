"""An asyncio loop whose clock jumps: an hour of waiting takes no time, and the same program takes the same path.

When nothing is ready, the loop does not sleep until the next timer: it moves its clock there. Sleeps, timeouts and
periods of production code then run as they are, in order, without a second of waiting. If nothing is ready and no
timer is set, nothing can ever happen again, and the loop says so instead of hanging.

Threads and sockets live in real time and do not belong on this loop. (looptime patches a running loop for the
same end; thirty lines of our own can also tell a deadlock, and simulations need that.)
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(RuntimeError):
    """Every task waits for something that no timer and no other task will bring."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks: reports what is ready now, else asks the loop to jump by the time it would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Deadlock("every task waits, and no timer is set that could wake one")
            self.now += max(timeout, 0.0)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop; `time()` starts at zero."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
