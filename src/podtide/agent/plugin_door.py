"""The plugin's way in: a call that needs no wait is answered in one go, where its connection is accepted.

A pod's start waits for the plugin, and the plugin for the agent. By way of an HTTP server, its tasks, streams and
headers, an answer takes more than twice as long, and it needs none of them: the plugin's request is known to the byte
(plugin/PROTOCOL.md), and mostly there when the connection is.

Whatever else comes goes to the HTTP server, connection and bytes, as if nobody had looked: other paths, requests in
pieces, rubbish, and ADDs that have to wait. So limits, patience and the end of a wait are known in one place alone.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from socket import MSG_PEEK, socket
from typing import Any

from podtide.agent.cni_calls import CniCalls
from podtide.agent.plugin_protocol import Answer, decode_call, encode_answer
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

arrived_at: ContextVar[float | None] = ContextVar("arrived_at", default=None)
"""For the HTTP server: when the call of this connection came, if it was looked at here and has to wait."""

_REQUEST = re.compile(rb"POST /cni HTTP/1\.0\r\nContent-Length: (\d{1,9})\r\n\r\n")
_READ_BYTES = 1 << 14
"""A call is a few kB. What is answered to no more than this fits into the kernel's buffer, and is sent in one go."""
_PAUSE_SECONDS = 1.0
_LAST_ANSWERS_SECONDS = 2.0

Server = Callable[[], asyncio.Protocol]


class PluginDoor:
    """Accepts connections, answers calls, and hands the rest to the server."""

    def __init__(self, calls: CniCalls, server: Server, *, clock: Clock, log: Logger) -> None:
        self._calls = calls
        self._server = server
        self._clock = clock
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._listener: socket | None = None
        self._silent: set[socket] = set()
        """Who has connected and not spoken yet."""
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, listener: socket) -> None:
        """Let callers in from now on; the listener is closed with the door."""
        listener.setblocking(False)
        self._listener = listener
        self._loop.add_reader(listener, self._let_in, listener)

    async def close(self) -> None:
        """Let nobody in any more; what is being answered or handed over still is."""
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in tuple(self._silent):
            self._forget(connection)
            connection.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_ANSWERS_SECONDS)

    def _let_in(self, listener: socket) -> None:
        """One caller each time, so that nobody else in the program waits for a whole queue of them."""
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionError):
            return  # it has gone again
        except OSError as error:
            # No descriptor is left, mostly. Whoever knocks stays in the queue, and would be reported without end.
            self._log.warning("cannot let the plugin in; will try again", error=str(error))
            self._loop.remove_reader(listener)
            self._loop.call_later(_PAUSE_SECONDS, self._resume)
            return
        connection.setblocking(False)
        self._hear(connection)

    def _resume(self) -> None:
        if self._listener is not None:
            self.open(self._listener)

    def _hear(self, connection: socket) -> None:
        """Read what has come, and see to it that something becomes of it."""
        self._forget(connection)
        try:
            request = connection.recv(_READ_BYTES)
        except BlockingIOError:
            self._silent.add(connection)
            self._loop.add_reader(connection, self._hear, connection)
            return
        except OSError:
            request = b""
        if not request or _has_gone(connection):
            connection.close()
        elif (body := _whole_body(request)) is None:
            self._do(self._hand_over(connection, request))
        else:
            self._answer(connection, request, body)

    def _answer(self, connection: socket, request: bytes, body: bytes) -> None:
        try:
            environment, stdin = decode_call(body)
        except InvalidInput:
            self._do(self._hand_over(connection, request))
            return
        give = partial(self._give, connection)
        arrived = self._calls.answer_now(environment, stdin, arrived=self._clock.monotonic(), give=give)
        if arrived is not None:
            self._do(self._hand_over(connection, request, arrived))

    def _give(self, connection: socket, answer: Answer) -> None:
        content = encode_answer(answer)
        response = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)
        with connection, suppress(OSError):  # there may be nobody to read it any more
            connection.send(response)

    async def _hand_over(self, connection: socket, request: bytes, arrived: float | None = None) -> None:
        """Give the server the connection, and what has been read from it, before it reads the rest."""
        arrived_at.set(arrived)  # the server's tasks inherit it
        _, server = await self._loop.connect_accepted_socket(self._server, connection)
        server.data_received(request)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, connection: socket) -> None:
        if connection in self._silent:
            self._silent.remove(connection)
            self._loop.remove_reader(connection)


def _has_gone(connection: socket) -> bool:
    """An agent that was stopped for a while finds requests of plugins that have given up: they must get nothing."""
    try:
        return not connection.recv(1, MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _whole_body(request: bytes) -> bytes | None:
    """The body of a plugin's request, if that is what this is, from the first to the last byte."""
    head = _REQUEST.match(request)
    if head is None or len(request) - head.end() != int(head[1]):
        return None
    return request[head.end() :]
