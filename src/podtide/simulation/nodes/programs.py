"""The programs of a simulated cluster as tasks of one process: started, stopped in good order, or killed.

A program that ends by an error ends the simulation: `check` says which it was and why. What a killed program still
does while its task unwinds has no effect, because its connections were cut first (see `recording`) and its disk was
killed; that is as near to kill -9 as one process gets.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from podtide.core.errors import StopError


class ProgramFailed(StopError):
    """A program of the simulation ended by an error, which is the cause of this one."""


class Line(Protocol):
    """A program's connection to another program."""

    def cut(self) -> None:
        """Refuse every request from now on."""
        ...


class Programs:
    """Tasks by the name of their program."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._lines: dict[str, tuple[Line, ...]] = {}
        self._ended: dict[str, None] = {}
        """Programs that ended at any time, so that `check` need not go through all."""

    def start(self, name: str, run: Coroutine[Any, Any, Any], *lines: Line) -> None:
        """Start a program; `lines` are all its connections."""
        task = self._tasks[name] = asyncio.create_task(run, name=name)
        task.add_done_callback(lambda _task: self._ended.setdefault(name))
        self._lines[name] = lines

    async def stop(self, name: str) -> None:
        """End the program as on SIGTERM, and wait until it has ended. Nothing if it does not run."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            _raise_failure(name, task)

    async def kill(self, name: str) -> None:
        """End the program as by kill -9: its connections are cut first."""
        for line in self._lines.pop(name, ()):
            line.cut()
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(
                task, return_exceptions=True
            )  # errors of a killed program are of no interest

    async def end_of(self, name: str, *, within_seconds: float) -> BaseException | None:
        """Wait for a program to end by itself, and return its error, which is expected and does not end the simulation."""
        task = self._tasks.pop(name, None)
        if task is None:
            return None
        done, _ = await asyncio.wait({task}, timeout=within_seconds)
        if not done:
            self._tasks[name] = task
            return None
        return None if task.cancelled() else task.exception()

    def check(self) -> None:
        """Raise ProgramFailed if a program ended by an error."""
        for name in self._ended:
            task = self._tasks.get(name)
            if task is not None and task.done():
                _raise_failure(name, task)

    async def close(self) -> None:
        """Kill all programs that run, the last started first."""
        for name in reversed(tuple(self._tasks)):
            await self.kill(name)


def _raise_failure(name: str, task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise ProgramFailed(f"{name} ended by {type(error).__name__}: {error}") from error
