"""An asyncio loop whose clock jumps: an hour of waiting takes no time, and the same program takes the same path.

When nothing is ready, the loop does not sleep until the next timer: it moves its clock there. Sleeps, timeouts and
periods of production code then run as they are, in order, without a second of waiting. If nothing is ready and no
timer is set, nothing can ever happen again, and the loop says so instead of hanging.

Ready tasks run in the order in which they became ready, as on any asyncio loop. With an `order` to draw from, any of them
may be next, so that a simulation searches interleavings as well as delays. Callbacks that are not tasks keep their places:
asyncio itself relies on their order.

Threads and sockets live in real time and do not belong on this loop. (looptime patches a running loop for the
same end; thirty lines of our own can also tell a deadlock, and simulations need that.)
"""

import asyncio
import gc
import selectors
from collections import deque
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

_OBJECTS_PER_COLLECTION = 50_000
_CALLED = "_callback"
"""What a handle calls. asyncio tells of that nowhere else."""


class Deadlock(RuntimeError):
    """Every task waits for something that no timer and no other task will bring about."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks: reports what is ready now, else asks the loop to jump by the time it would have slept.

    While the loop has work of its own (`timeout` 0), the kernel is not even asked: nothing on this loop waits for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return []
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Deadlock("every task waits, and no timer is set that could wake one")
            self.now += max(timeout, 0.0)
        return ready


class _NumberedTask(asyncio.Task[T]):
    """A task that sets order by its number, not by where in memory it lies.

    asyncio keeps tasks in sets, and cancels them in the order of the set: that order must be the same in every process.
    """

    def __init__(
        self, work: Coroutine[Any, Any, T] | Generator[Any, None, T], number: int, **options: Any
    ) -> None:
        self._number = number  # first: asyncio's own __init__ puts the task into a set
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number


class _DrawnOrder(deque[asyncio.Handle]):
    """What is ready, of which any task may be next: one of them is put in the place of the first."""

    def __init__(self, order: Random) -> None:
        super().__init__()
        self._order = order

    def popleft(self) -> asyncio.Handle:
        if len(self) > 1 and _is_task(self[0]):
            tasks = [place for place, handle in enumerate(self) if _is_task(handle)]
            drawn = tasks[self._order.randrange(len(tasks))]
            self[0], self[drawn] = self[drawn], self[0]
        return super().popleft()


def _is_task(handle: asyncio.Handle) -> bool:
    """Whether it runs a task's next step: then what it calls is a method of that task."""
    called = getattr(handle, _CALLED)
    return isinstance(getattr(called, "__self__", None), asyncio.Task)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop; `time()` starts at zero. With an `order`, which ready task is next is drawn from it."""

    def __init__(self, order: Random | None = None) -> None:
        self._jumping = _JumpingSelector()
        self._numbers = count(1)
        super().__init__(self._jumping)
        if order is not None:
            self._ready = _DrawnOrder(order)
        self.set_task_factory(self._make_task)

    def _make_task(
        self,
        _loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> asyncio.Task[T]:
        return _NumberedTask(work, next(self._numbers), loop=self, **options)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now


def run(main: Coroutine[Any, Any, T], order: Random | None = None) -> T:
    """`asyncio.run` on virtual time; with an `order`, ready tasks run in an order drawn from it."""
    with _collecting_seldom(), asyncio.Runner(loop_factory=partial(VirtualTimeLoop, order)) as runner:
        return runner.run(main)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Look for garbage in cycles once in a while only: a simulation makes objects by the million, and few such cycles."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
