"""A network that can be cut or fall silent: a TCP proxy before a server, which counts what clients try."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

from accepted_connections import accepting

PIECE_BYTES = 65536


class Mood(Enum):
    """How the network is."""

    WELL = auto()
    CUT = auto()
    SILENT = auto()


class _Link:
    """One client's connection; a dead one is open, and nothing passes."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.is_dead = False


class BadNetwork:
    """The way to one server."""

    def __init__(self, host: str, port: int, clock: Callable[[], float]) -> None:
        self.port = 0
        self.attempts: list[float] = []
        """When clients tried something: a new connection, or a request on one that is dead."""
        self._server = (host, port)
        self._clock = clock
        self._mood = Mood.WELL
        self._links: set[_Link] = set()

    def cut(self) -> None:
        """Close every connection, and every one that is tried."""
        self._mood = Mood.CUT
        for link in self._links:
            link.client.transport.abort()

    def fall_silent(self) -> None:
        """Swallow all that is sent, on every connection, and close none."""
        self._mood = Mood.SILENT
        for link in self._links:
            link.is_dead = True

    def recover(self) -> None:
        """Serve new connections. Dead ones stay so: whoever forwarded them has forgotten them."""
        self._mood = Mood.WELL

    def most_attempts_in_a_second(self) -> int:
        """The largest count of attempts in any second."""
        most, window = 0, deque[float]()
        for moment in self.attempts:
            window.append(moment)
            while window[0] <= moment - 1.0:
                window.popleft()
            most = max(most, len(window))
        return most

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        self.attempts.append(self._clock())
        link = _Link(writer)
        link.is_dead = self._mood is Mood.SILENT
        self._links.add(link)
        try:
            if self._mood is not Mood.CUT:
                with suppress(OSError):
                    await self._connect(reader, link)
        finally:
            self._links.remove(link)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, link: _Link) -> None:
        answers, requests = await asyncio.open_connection(*self._server)
        answering = asyncio.create_task(self._forward(answers, link.client, link))
        try:
            await self._forward(reader, requests, link)
        finally:
            answering.cancel()
            requests.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, link: _Link) -> None:
        with suppress(OSError):
            while data := await source.read(PIECE_BYTES):
                if not link.is_dead:
                    sink.write(data)
                    await sink.drain()
                elif sink is not link.client:
                    self.attempts.append(self._clock())
        if not link.is_dead:
            sink.transport.abort()  # and a client whose link is dead does not hear that its server has gone


@asynccontextmanager
async def bad_network(host: str, port: int) -> AsyncIterator[BadNetwork]:
    """A network that is well, until it is told otherwise."""
    network = BadNetwork(host, port, asyncio.get_running_loop().time)
    async with accepting(network.take, host) as network.port:
        yield network
