"""One application for many tests: putting the routes together takes longer than most of the tests that ask them.

Only for tests to which it is all the same how often the service was asked before: its metrics, its readiness and its
random numbers go on from test to test. The allocator and the log are those of the test that runs.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from random import Random
from typing import Any, TextIO

from allocator.service.running import LOOPBACK, a_log
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.service.application import make_service
from podtide.allocator.service.server import serving
from podtide.runtime.clock import SystemClock


class _PassedOn:
    """Whatever is asked of it is asked of another."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other(), name)


class SharedApplication:
    """Routes that were put together once, over the allocator that is served."""

    def __init__(self) -> None:
        self._allocator: AdministeredAllocator | None = None
        self._log = a_log()
        allocator: Any = _PassedOn(lambda: self._allocator)
        log: Any = _PassedOn(lambda: self._log)
        self._service = make_service(
            allocator,
            log=log,
            clock=SystemClock(),
            randomness=Random(1),
            refresh_seconds=0.0,
            prove=lambda: allocator.list_containers(limit=1),
        )

    @asynccontextmanager
    async def served(
        self, allocator: AdministeredAllocator, log_to: TextIO | None = None
    ) -> AsyncIterator[str]:
        """The URL of the service over this allocator."""
        self._allocator, self._log = allocator, a_log(log_to)
        async with serving(self._service, LOOPBACK) as url:
            yield url


@cache
def shared_application() -> SharedApplication:
    """That of this process."""
    return SharedApplication()
