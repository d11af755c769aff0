"""A pod's interfaces as the runtime attaches them, one after the other, for as long as the kubelet waits for a sandbox.

A call that is cut off, or that never began because one before it was, is the slowest there is. Leaving it out would make
a design look quicker the more of its calls fail. So it counts with the deadline that ended the attempt.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from podtide.runtime.clock import Clock

KUBELET_SECONDS = 240.0
"""Twice the runtime's time for a request, which is two minutes by default; then the sandbox is torn down."""

Add = Callable[[int], Awaitable[None]]
"""The ADD of the interface of that number."""


class Attached(Struct, frozen=True):
    """What became of a pod's ADDs."""

    answered: tuple[float, ...]
    """How many seconds each took."""
    unanswered: tuple[float, ...]
    """For each the deadline that ended the attempt, in seconds."""

    @property
    def is_ready(self) -> bool:
        """Whether all were answered in time."""
        return not self.unanswered


async def attach(add: Add, interfaces: int, clock: Clock) -> Attached:
    """Make the ADDs of so many interfaces, until the kubelet gives up, or one of them does by itself (TimeoutError)."""
    answered: list[float] = []
    started = began = clock.monotonic()
    try:
        async with asyncio.timeout(KUBELET_SECONDS):
            for number in range(interfaces):
                began = clock.monotonic()
                await add(number)
                answered.append(clock.monotonic() - began)
    except TimeoutError:
        now = clock.monotonic()
        by_kubelet = now - started >= KUBELET_SECONDS
        deadline = KUBELET_SECONDS if by_kubelet else now - began
        return Attached(tuple(answered), (deadline,) * (interfaces - len(answered)))
    return Attached(tuple(answered), ())


class Attachments(Struct, frozen=True):
    """All pods of a run."""

    pods: Sequence[Attached]

    @property
    def ready(self) -> int:
        """Pods that have all their addresses in time."""
        return sum(pod.is_ready for pod in self.pods)

    @property
    def given_up_by_kubelet(self) -> int:
        """Pods whose whole time was over; the others that are not ready had an ADD that failed before."""
        return sum(KUBELET_SECONDS in pod.unanswered for pod in self.pods)

    @property
    def answered(self) -> int:
        """ADDs that were answered in time."""
        return sum(len(pod.answered) for pod in self.pods)

    @property
    def unanswered(self) -> int:
        """ADDs that were not."""
        return sum(len(pod.unanswered) for pod in self.pods)

    def add_seconds(self, part: float) -> float:
        """What this part of all ADDs does not exceed, those without an answer among them."""
        took = sorted(seconds for pod in self.pods for seconds in (*pod.answered, *pod.unanswered))
        return took[min(len(took) - 1, int(len(took) * part))]
