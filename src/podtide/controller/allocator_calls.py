"""Counts the controller's calls of the allocator by what became of them, so that a chart tells an outage from a refusal."""

import asyncio
from collections import Counter

from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation, T
from podtide.allocator.port import Allocator
from podtide.core.errors import PodtideError

OK = "ok"
ABANDONED = "abandoned"
"""The controller did not wait any longer: its own timeout was over, or it stopped."""


class CountedAllocator(AllocatorInterceptor):
    """The allocator, with every call counted by method and outcome: `ok`, `abandoned`, or the name of the error."""

    def __init__(self, allocator: Allocator, counts: Counter[tuple[str, str]]) -> None:
        super().__init__(allocator)
        self._counts = counts

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Call, and count the call when its outcome is known."""
        outcome = OK
        try:
            return await request.send(self._inner)
        except asyncio.CancelledError:
            outcome = ABANDONED
            raise
        except PodtideError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._counts[request.verb, outcome] += 1
