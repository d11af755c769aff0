"""An event loop in a thread of its own: a browser's own loop occupies the caller's (see `browser`)."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_SECONDS = 300.0
"""Only what is broken takes so long."""


class LoopThread(Generic[T]):
    """A context that is open in the thread for as long as this one is."""

    def __init__(self, context: AbstractAsyncContextManager[T]) -> None:
        self._context = context
        self._opened: Future[T] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.result(PATIENCE_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_SECONDS)
        self._ended.result(0)

    @property
    def opened(self) -> T:
        """What the context gave; to be used there only."""
        return self._opened.result(0)

    def call(self, awaited: Coroutine[Any, Any, R]) -> R:
        """What a coroutine returns that is run there."""
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result(PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._hold())
            self._ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            (self._ended if self._opened.done() else self._opened).set_exception(error)

    async def _hold(self) -> None:
        """Open and close in one task, as contexts expect."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._context as opened:
            self._opened.set_result(opened)
            await self._stop.wait()
