"""A way to the API server that counts what comes back over it, down to the last byte of TLS."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from accepted_connections import LOOPBACK, accepting

CHUNK_BYTES = 65536


class CountingProxy:
    """Carries bytes both ways. The server's certificate is for its address, so it is as good on another port."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._port = 0
        self.bytes_received = 0
        """By whoever is connected, from the server."""

    def kubeconfig(self, direct: Path) -> Path:
        """A kubeconfig for the same user that leads through here."""
        file = direct.with_name(f"{direct.stem}-counted.kubeconfig")
        file.write_text(direct.read_text().replace(self._server_url, f"https://{LOOPBACK}:{self._port}"))
        return file

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen until the context ends."""
        async with accepting(self._carry) as self._port:
            yield

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, urlsplit(self._server_url).port)
        async with closed_after(back), asyncio.TaskGroup() as both_ways:
            both_ways.create_task(self._pump(reader, back))
            both_ways.create_task(self._pump(there, writer, counted=True))

    async def _pump(self, reader: StreamReader, writer: StreamWriter, *, counted: bool = False) -> None:
        with suppress(OSError):  # it is for the two ends to say what that means
            while chunk := await reader.read(CHUNK_BYTES):
                self.bytes_received += len(chunk) if counted else 0
                writer.write(chunk)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def closed_after(writer: StreamWriter) -> AsyncIterator[None]:
    """Leave no connection open."""
    try:
        yield
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
