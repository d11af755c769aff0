"""Whether the allocator answers, so that nodes learn within seconds that a request cannot be carried out.

A node whose request is not answered must not go on showing `Granted=True` of the previous request. Two things would
cause that: a call with a longer timeout than a pod waits for an address, and requests that queue behind such calls,
because workers are few and a dead allocator occupies all of them. So each call has `ANSWER_SECONDS`, and after a few
calls in a row without an answer the allocator counts as unavailable: requests are then refused at once, without a call,
and only the reconciles of subnets, which are few, try whether it is back. The first answer to any call ends that, and
queues the nodes that were refused, instead of each waiting for a back-off that has grown meanwhile.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from podtide.allocator.errors import AllocatorUnavailable
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.counts import ControllerCounts

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""The timeout of one call: an allocator behind a cloud's API takes several seconds.

What the call did is unknown after that, as with any lost answer, and it is retried.
"""
RETRY_SECONDS = 5.0
"""How often a subnet is reconciled while the allocator is unavailable, however seldom it is polled otherwise."""
_FAILURES_UNTIL_AWAY = 3
"""How many calls in a row must fail: one lost answer says nothing of the next."""


async def with_deadline(call: Awaitable[T], doing: str) -> T:
    """The result of the call, if it comes within `ANSWER_SECONDS`; else AllocatorUnavailable."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await call
    except TimeoutError as error:
        raise AllocatorUnavailable(
            f"cannot {doing}: the allocator gave no answer within {ANSWER_SECONDS:g} s"
        ) from error


class AllocatorOutage:
    """Whether the allocator is unavailable, by the calls of one term, and which nodes were refused because of it."""

    def __init__(self, nodes: WorkQueue[str], counts: ControllerCounts) -> None:
        self._nodes = nodes
        self._counts = counts
        self._failures = 0
        self._error = ""
        self._refused: set[str] = set()

    @property
    def is_known(self) -> bool:
        """Whether the allocator counts as unavailable."""
        return self._failures >= _FAILURES_UNTIL_AWAY

    @property
    def error(self) -> str:
        """The last error; "" while the allocator answers."""
        return self._error

    def note_failure(self, error: AllocatorUnavailable) -> bool:
        """Count a call without an answer. Returns whether the allocator counts as unavailable from now on."""
        was_known = self.is_known
        self._failures += 1
        self._error = str(error)
        if self.is_known:
            self._counts.allocator_reachable, self._counts.allocator_error = False, self._error
        return self.is_known and not was_known

    def note_refused(self, node: str) -> None:
        """Remember a node whose request was refused because of the outage, so that it is queued when it is over."""
        self._refused.add(node)

    def note_answer(self) -> bool:
        """Note that the allocator answered, even with a refusal. Returns whether an outage ended."""
        was_known = self.is_known
        self._failures, self._error = 0, ""
        self._counts.allocator_reachable, self._counts.allocator_error = True, ""
        refused, self._refused = sorted(self._refused), set()
        for node in refused:
            self._nodes.add(node)
        return was_known

    def end(self) -> None:
        """Note that the term is over: a replica that does not lead calls nothing, so it knows nothing of the allocator."""
        self._counts.allocator_reachable, self._counts.allocator_error = None, ""
