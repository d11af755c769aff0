"""Lets programs inside namespaces reach the API server, which listens on the loopback address outside alone.

A program of its own, so that it ends with everything else. In each namespace it listens on the same address and port:
kubeconfigs and the server's certificate are as good there as outside.

    python -m e2e.relay PORT NAMESPACE...
"""

import asyncio
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence
from contextlib import suppress

from e2e.namespaces import Namespace

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65536


async def relay(port: int, namespaces: Sequence[Namespace]) -> None:
    """Carry bytes both ways until ended."""

    async def carry(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):  # it is for the two ends to say what that means
            there, back = await asyncio.open_connection(LOOPBACK, port)
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()

    servers = [
        await asyncio.start_server(carry, sock=each.inside(lambda: socket.create_server((LOOPBACK, port))))
        for each in namespaces
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _pump(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), [Namespace(name) for name in sys.argv[2:]]))
