"""Whether the allocator answers, so that a request it cannot carry out is told so within seconds.

A node whose request is not answered must not go on reading `Granted=True` of the request before. Two things would let
it: a call that is waited for much longer than anybody waits for an address, and requests that queue behind such calls,
for workers are few and a dead allocator occupies all of them. So each call has `ANSWER_SECONDS`, and after a few calls
in a row without an answer the allocator counts as away: requests are then refused without a call, each at once, and
the looks at subnets alone, which are few, ask whether it is back. The first answer to anything ends that, and has the
nodes that were refused looked at again, instead of each waiting out a back-off that has grown meanwhile.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from podtide.allocator.port import AllocatorUnavailable
from podtide.cluster.work_queue import WorkQueue

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""For one call: an allocator behind a cloud's API takes several seconds. What the call did is unknown after that, as with
any lost answer, and it is made again."""
RETRY_SECONDS = 5.0
"""How often a subnet is looked at while the allocator is away, however seldom it is polled otherwise."""
_FAILURES_UNTIL_AWAY = 3
"""One answer may be lost: that says nothing of the next."""


async def promptly(call: Awaitable[T], doing: str) -> T:
    """The answer, if it comes within `ANSWER_SECONDS`; else AllocatorUnavailable."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await call
    except TimeoutError as error:
        raise AllocatorUnavailable(
            f"cannot {doing}: the allocator gave no answer within {ANSWER_SECONDS:g} s"
        ) from error


class AllocatorOutage:
    """What the calls of one term have shown, and whom to look at when it is over."""

    def __init__(self, nodes: WorkQueue[str]) -> None:
        self._nodes = nodes
        self._failures = 0
        self._error = ""
        self._refused: set[str] = set()

    @property
    def is_known(self) -> bool:
        """Whether the allocator counts as away."""
        return self._failures >= _FAILURES_UNTIL_AWAY

    @property
    def error(self) -> str:
        """What was last said of it; "" while it answers."""
        return self._error

    def note_failure(self, error: AllocatorUnavailable) -> bool:
        """A call had no answer; whether the allocator counts as away for the first time now."""
        was_known = self.is_known
        self._failures += 1
        self._error = str(error)
        return self.is_known and not was_known

    def note_refused(self, node: str) -> None:
        """The node's request is not carried out because of that: it has to be looked at when it is over."""
        self._refused.add(node)

    def note_answer(self) -> bool:
        """The allocator answered, be it with a refusal; whether it had counted as away."""
        was_known = self.is_known
        self._failures, self._error = 0, ""
        refused, self._refused = sorted(self._refused), set()
        for node in refused:
            self._nodes.add(node)
        return was_known
