"""The plugin's way in: a call that needs no wait is answered in one go, where its connection is accepted.

A pod's start waits for the plugin, and the plugin for the agent. By way of an HTTP server, its tasks, streams and
headers, an answer takes more than twice as long, and it needs none of them: the plugin's request is known to the byte
(plugin/PROTOCOL.md), and mostly there when the connection is.

Whatever else comes goes to the HTTP server, connection and bytes, as if nobody had looked: other paths, requests in
pieces, rubbish, and ADDs that have to wait. So limits, patience and the end of a wait are known in one place alone;
who connects and says nothing is given up as there.
"""

import asyncio
import re
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from socket import MSG_PEEK, socket

from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.plugin_protocol import Answer, decode_call, encode_answer
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import Clock
from podtide.runtime.open_port import OpenPort

arrived_at: ContextVar[float | None] = ContextVar("arrived_at", default=None)
"""For the HTTP server: when the call of this connection came, if it was looked at here and has to wait."""

_REQUEST = re.compile(rb"POST /cni HTTP/1\.0\r\nContent-Length: (\d{1,9})\r\n\r\n")
_READ_BYTES = 1 << 14
"""A call is a few kB. What is answered to no more than this fits into the kernel's buffer, and is sent in one go."""


class PluginConnections:
    """Answers calls where their connections are accepted, and lets the port's server have the rest."""

    def __init__(self, calls: CniCalls, *, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._port: OpenPort | None = None
        self._silent: dict[socket, asyncio.TimerHandle] = {}
        """Who has connected and not spoken yet, in the order in which they came, and when they are given up."""

    def open(self, port: OpenPort) -> None:
        """Let callers in from now on; the port is closed with the door."""
        self._port = port
        port.open(self._hear)

    async def close(self) -> None:
        """Let nobody in any more; what is being answered or handed over still is."""
        for connection in tuple(self._silent):
            self._give_up(connection)
        if self._port is not None:
            await self._port.close()

    def _hear(self, connection: socket) -> None:
        """Read what has come, and see to it that something becomes of it."""
        self._forget(connection)
        try:
            request = connection.recv(_READ_BYTES)
        except BlockingIOError:
            self._wait_for(connection)
            return
        except OSError:
            request = b""
        if not request or _has_gone(connection):
            connection.close()
        elif (body := _whole_body(request)) is None:
            self._hand_over(connection, request)
        else:
            self._answer(connection, request, body)

    def _wait_for(self, connection: socket) -> None:
        assert self._port is not None
        if len(self._silent) >= self._port.most:
            self._give_up(next(iter(self._silent)))
        patience = self._loop.call_later(self._port.limits.request_seconds, self._give_up, connection)
        self._silent[connection] = patience
        self._loop.add_reader(connection, self._hear, connection)

    def _give_up(self, connection: socket) -> None:
        self._forget(connection)
        connection.close()

    def _answer(self, connection: socket, request: bytes, body: bytes) -> None:
        try:
            environment, stdin = decode_call(body)
        except InvalidInput:
            self._hand_over(connection, request)
            return
        give = partial(self._give, connection)
        arrived = self._calls.answer_now(environment, stdin, arrived=self._clock.monotonic(), give=give)
        if arrived is not None:
            self._hand_over(connection, request, arrived)

    def _give(self, connection: socket, answer: Answer) -> None:
        content = encode_answer(answer)
        response = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)
        with connection, suppress(OSError):  # there may be nobody to read it any more
            connection.send(response)

    def _hand_over(self, connection: socket, request: bytes, arrived: float | None = None) -> None:
        """Give the server the connection, and what has been read from it, before it reads the rest."""
        assert self._port is not None
        context = copy_context()
        context.run(arrived_at.set, arrived)  # the server's tasks inherit it
        context.run(self._port.admit, connection, request)

    def _forget(self, connection: socket) -> None:
        patience = self._silent.pop(connection, None)
        if patience is not None:
            patience.cancel()
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
