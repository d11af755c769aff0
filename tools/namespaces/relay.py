"""Carries connections between namespaces: what listens on the loopback address of one is reached on that of others too.

A program of its own, so that it ends with everything else. It listens on the same address and ports as the servers do:
kubeconfigs and the servers' certificates are as good here as there. `-` is the namespace that the relay is started in.

    python -m namespaces.relay PORT,PORT... NAMESPACE-OF-THE-SERVERS NAMESPACE...
"""

import asyncio
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from namespaces.namespace import Namespace

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65536
HERE = "-"
_Result = TypeVar("_Result")


def relay_command(ports: Sequence[int], servers: str, clients: Sequence[str]) -> list[str]:
    """What to start."""
    tools = Path(__file__).parent.parent
    numbers = ",".join(map(str, ports))
    return [
        "env",
        f"PYTHONPATH={tools}",
        sys.executable,
        "-m",
        "namespaces.relay",
        numbers,
        servers,
        *clients,
    ]


async def relay(ports: Sequence[int], servers: str, clients: Sequence[str]) -> None:
    """Carry bytes both ways until ended."""
    listeners = [await _listener(port, servers, client) for port in ports for client in clients]
    await asyncio.gather(*(each.serve_forever() for each in listeners))


async def _listener(port: int, servers: str, clients: str) -> asyncio.Server:
    async def carry(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):  # it is for the two ends to say what that means
            connected = await asyncio.to_thread(
                _inside, servers, lambda: socket.create_connection((LOOPBACK, port))
            )
            there, back = await asyncio.open_connection(sock=connected)
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()

    return await asyncio.start_server(
        carry, sock=_inside(clients, lambda: socket.create_server((LOOPBACK, port)))
    )


def _inside(namespace: str, function: Callable[[], _Result]) -> _Result:
    return function() if namespace == HERE else Namespace(namespace).inside(function)


async def _pump(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(relay([int(port) for port in sys.argv[1].split(",")], sys.argv[2], sys.argv[3:]))
