"""A server of a test on the loopback address, none of whose connections outlives it.

asyncio's own leaves that to whoever handles them. A connection that was accepted while the server was being closed, and one
whose handler is cancelled before its first step, would be nobody's: it is found by the garbage collector, in the midst of some
later test, which then fails for it.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

LOOPBACK = "127.0.0.1"
_TURNS = 5
"""Of the loop, until a connection that was just accepted is known, and until one that was aborted is closed."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def accepting(
    handler: Handler, host: str = LOOPBACK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """The port on which the handler is given every connection; those that are left at the end are aborted."""
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(handler(reader, writer))
        task.add_done_callback(lambda _: _abort(writer))
        tasks.add(task)

    server = await asyncio.start_server(connected, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        # A server that is closed forgets those whom it has just accepted: first it accepts nobody any more.
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening)
        await _turn()
        server.close()
        while tasks:  # a handshake that ends meanwhile adds one
            ending = tasks.copy()
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            tasks -= ending
            await _turn()


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _abort(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.transport.abort()
