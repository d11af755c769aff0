"""The wire between a browser and a server, which can fall silent.

As it does when a laptop's lid is closed: nothing comes through any more, and no connection ends.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from page_stage.loop_thread import LoopThread

LOOPBACK = "127.0.0.1"
_PIECE = 1 << 16


class _Wire:
    """Connections that are passed on, and whether they are at the moment."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.awake = asyncio.Event()
        self.awake.set()
        self.open: set[asyncio.Task[None]] = set()
        self._to = port

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on until it ends, at either side."""
        task = asyncio.current_task()
        assert task is not None  # a server's callback is run as one
        self.open.add(task)
        try:
            await self.awake.wait()
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._to)
            ways = {
                asyncio.ensure_future(self._pass_on(reader, far_writer)),
                asyncio.ensure_future(self._pass_on(far_reader, writer)),
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                far_writer.close()
        except OSError:
            pass  # the server is away: the browser sees its connection end
        finally:
            self.open.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self.awake.wait()
                writer.write(piece)
                await writer.drain()


class SleepingWire:
    """A port that leads to another one. `url` is the server's, by this wire."""

    def __init__(self, url: str) -> None:
        self._thread = LoopThread(self._open(urlsplit(url).port or 80))

    def __enter__(self) -> Self:
        self._thread.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        """Where a browser goes."""
        return f"http://{LOOPBACK}:{self._thread.opened.port}/"

    def fall_asleep(self) -> None:
        """Let nothing through, and end nothing."""
        self._thread.call(self._set(is_awake=False))

    def wake_up(self) -> None:
        """Let everything through again; what was open before is dead, as it is after an hour."""
        self._thread.call(self._set(is_awake=True))

    async def _set(self, *, is_awake: bool) -> None:
        wire = self._thread.opened
        if not is_awake:
            wire.awake.clear()
            return
        for task in tuple(wire.open):
            task.cancel()
        await asyncio.sleep(0)
        wire.awake.set()

    @asynccontextmanager
    async def _open(self, port: int) -> AsyncIterator[_Wire]:
        wire = _Wire(port)
        server = await asyncio.start_server(wire.accept, LOOPBACK, 0)
        wire.port = server.sockets[0].getsockname()[1]
        try:
            yield wire
        finally:
            server.close()
            for task in tuple(wire.open):
                task.cancel()
