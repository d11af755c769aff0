"""A cluster served in this process, and podtide's programs as processes of their own on it."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from patience import PATIENCE_SECONDS
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.runtime.listening import ListenAddress


@asynccontextmanager
async def served_cluster(kubeconfig: Path) -> AsyncIterator[EmbeddedCluster]:
    """An embedded cluster that other processes reach by this kubeconfig."""
    cluster = EmbeddedCluster(kinds=SERVED_KINDS)
    try:
        async with serving(cluster.server, ListenAddress("127.0.0.1", 0)) as url:
            write_kubeconfig(kubeconfig, url)
            yield cluster
    finally:
        cluster.close()


class Program:
    """A running `podtide` command that logs JSON."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def logged(self, event: str) -> dict[str, Any]:
        """The next line of this event."""
        assert self.process.stderr is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while line := await self.process.stderr.readline():
                    self.lines.append(json.loads(line))
                    if self.lines[-1]["event"] == event:
                        return self.lines[-1]
        raise AssertionError(f"no line with {event!r}, but {self.lines}")

    async def stop(self) -> None:
        """Ask it to stop, and see that it does so in peace."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.logged("stopped")
            assert await self.process.wait() == 0


@asynccontextmanager
async def running(
    *arguments: str | Path,
    inside: Sequence[str] = (),
    python: str | Path = sys.executable,
    **environment: str,
) -> AsyncIterator[Program]:
    """`inside` is a command that runs it somewhere else, such as in a network namespace; `python` has the podtide that runs."""
    process = await asyncio.create_subprocess_exec(
        *inside,
        python,
        *("-m", "podtide", *map(str, arguments)),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # a pipe that nobody reads to its end would never let it be waited for


async def until(so: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another process brings about."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await so():  # noqa: ASYNC110 - it has no way to tell us
            await asyncio.sleep(0.02)
