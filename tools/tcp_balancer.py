"""A port of the loopback address behind which several programs listen, as they do behind a Service.

Every new connection goes to the next one that accepts it; a connection that is open stays where it is, and breaks with the
program behind it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

_LOOPBACK = "127.0.0.1"
_MOST_BYTES = 65536


class TcpBalancer:
    """Deals connections out to ports of the loopback address."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._deal, _LOOPBACK, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def _deal(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        connection.add_done_callback(lambda _: writer.close())

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._ports:
            self._ports.append(port := self._ports.pop(0))
            with suppress(OSError):
                there_reader, there_writer = await asyncio.open_connection(_LOOPBACK, port)
                break
        else:
            return  # nobody is there: the connection is closed without a word
        ways = [
            asyncio.create_task(_copy(reader, there_writer)),
            asyncio.create_task(_copy(there_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            there_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await reader.read(_MOST_BYTES):
            writer.write(content)
            await writer.drain()
