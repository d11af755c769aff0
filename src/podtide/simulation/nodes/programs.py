"""The programs of a simulated cluster as tasks of one process: started, stopped in good order, or killed.

A program that ends by an error ends the simulation: `check` says which it was and why. What a killed program still
does while its task unwinds reaches nobody, because its lines were cut first (see `recording`) and its disk has
crashed; that is as near to kill -9 as one process gets.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from podtide.core.errors import StopError


class ProgramFailed(StopError):
    """A program of the simulation ended by an error, which is this one's cause."""


class Line(Protocol):
    """What connects a program with others."""

    def cut(self) -> None:
        """Nothing gets through any more."""
        ...


class Programs:
    """Tasks by the name of their program."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._lines: dict[str, tuple[Line, ...]] = {}
        self._ended: dict[str, None] = {}
        """Programs that ended at some time, so that nobody has to look at those that never did."""

    def start(self, name: str, run: Coroutine[Any, Any, Any], *lines: Line) -> None:
        """Let a program run; `lines` are all that it reaches others by."""
        task = self._tasks[name] = asyncio.create_task(run, name=name)
        task.add_done_callback(lambda _task: self._ended.setdefault(name))
        self._lines[name] = lines

    def is_running(self, name: str) -> bool:
        """Whether it was started and has not ended."""
        return name in self._tasks and not self._tasks[name].done()

    async def stop(self, name: str) -> None:
        """Ask the program to end, and wait until it has, as on SIGTERM. One that does not run is stopped already."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            _raise_failure(name, task)

    async def kill(self, name: str) -> None:
        """End the program without a chance to tidy up."""
        for line in self._lines.pop(name, ()):
            line.cut()
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)  # of its last words nobody hears

    async def end_of(self, name: str, *, within_seconds: float) -> BaseException | None:
        """Wait for a program that is to end by itself, and answer the error it ended by: it is expected, and no failure."""
        task = self._tasks.pop(name, None)
        if task is None:
            return None
        done, _ = await asyncio.wait({task}, timeout=within_seconds)
        if not done:
            self._tasks[name] = task
            return None
        return None if task.cancelled() else task.exception()

    def check(self) -> None:
        """ProgramFailed if one ended by an error."""
        for name in self._ended:
            task = self._tasks.get(name)
            if task is not None and task.done():
                _raise_failure(name, task)

    async def close(self) -> None:
        """Kill whatever still runs, the last to start first."""
        for name in reversed(tuple(self._tasks)):
            await self.kill(name)


def _raise_failure(name: str, task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise ProgramFailed(f"{name} ended by {type(error).__name__}: {error}") from error
