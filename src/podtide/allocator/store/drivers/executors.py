"""Where a database that blocks is used: in a thread of its own, or right here.

SQLite answers when it is done and not before. A program that serves lets it work in one thread, so that the loop goes on; a
simulation calls it inline, so that nothing happens outside of its own time and order.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs one function after the other."""

    async def run(self, work: Callable[[], T]) -> T:
        """The function's result."""
        ...

    def close(self) -> None:
        """Stop: no more functions will be run."""
        ...


class ThreadExecutor:
    """Runs functions in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="allocator-database")

    async def run(self, work: Callable[[], T]) -> T:
        """Run the function in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread, once it is idle."""
        self._thread.shutdown()


class InlineExecutor:
    """Runs functions in the caller's thread."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run the function now."""
        return work()

    def close(self) -> None:
        """Do nothing: there is no thread to end."""
