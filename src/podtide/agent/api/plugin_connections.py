"""The connections of the plugin: a call is read, carried out and answered where its connection is accepted.

A pod's start waits for the plugin, and the plugin for the agent. By way of an HTTP server, its tasks, streams and headers,
an answer takes more than twice as long, and it needs none of them: the plugin's request is known to the byte
(plugin/PROTOCOL.md), and mostly there when the connection is. So a call is decoded and carried out once, in the callback
of its connection. One that has to wait goes on in a task of its own; it is acknowledged after a moment, and cancelled
when its caller disconnects, so that no address is assigned to a plugin that has given up.

Requests in any other form go to the HTTP server, with their connection and the bytes that were read: other paths, requests
in pieces, and what is not HTTP at all.
"""

import asyncio
import re
from collections.abc import Callable
from socket import MSG_PEEK, socket

from podtide.agent.api.cni_calls import CniCalls, PendingCall
from podtide.agent.api.plugin_protocol import (
    ACKNOWLEDGE_AFTER_SECONDS,
    WAIT_HEADER,
    Answer,
    encode_answer,
    longest_wait,
)
from podtide.agent.port import Stopping
from podtide.core.errors import RetryError
from podtide.runtime.clock import Clock
from podtide.runtime.open_port import OpenPort

_REQUEST = re.compile(rb"POST /cni HTTP/1\.0\r\nContent-Length: (\d{1,9})\r\n\r\n")
_READ_BYTES = 1 << 14
"""A call is a few kB. The answer to a request of at most this size fits into the kernel's buffer: one send is enough."""

STOPPING = Stopping("the agent stops before an address became free: try again when it is back")


class TooManyWaiting(RetryError):
    """As many calls wait as the port allows connections."""


class PluginConnections:
    """Answers calls on the connections of a port, and passes other requests to the port's HTTP server."""

    def __init__(self, calls: CniCalls, *, add_wait_seconds: float, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        acknowledgement = f"HTTP/1.0 200 OK\r\n{WAIT_HEADER}: {longest_wait(add_wait_seconds)}\r\n\r\n"
        self._acknowledgement = acknowledgement.encode()
        self._loop = asyncio.get_running_loop()
        self._port: OpenPort | None = None
        self._silent: dict[socket, asyncio.TimerHandle] = {}
        """Connections without a request so far, the oldest first, each with the timer that closes it."""
        self._waiting: set[_WaitingCall] = set()

    def open(self, port: OpenPort) -> None:
        """Accept connections from now on. `close` closes the port."""
        self._port = port
        port.open(self._read)

    async def close(self) -> None:
        """Accept no more connections, and refuse the calls that wait. Requests of the HTTP server are still answered."""
        for connection in tuple(self._silent):
            self._drop(connection)
        if self._port is not None:
            await self._port.close()
        for each in self._waiting:
            each.stop()
        await asyncio.gather(*(each.task for each in self._waiting), return_exceptions=True)

    def _read(self, connection: socket) -> None:
        """Read the request if it is there, and answer it or pass it on."""
        if connection in self._silent:
            self._forget(connection)
        try:
            request = connection.recv(_READ_BYTES)
        except BlockingIOError:
            self._wait_for_request(connection)
            return
        except OSError:
            request = b""
        if not request or _has_disconnected(connection):
            connection.close()
        elif (body := _whole_body(request)) is None:
            assert self._port is not None
            self._port.admit(connection, request)
        else:
            self._answer(connection, body)

    def _answer(self, connection: socket, body: bytes) -> None:
        def respond(answer: Answer) -> None:
            _send(connection, _response(answer))
            connection.close()

        pending = self._calls.receive(body, arrived=self._clock.monotonic(), respond=respond)
        if pending is None:
            return
        assert self._port is not None
        if (most := self._port.most) > len(self._waiting):
            waiting = _WaitingCall(connection, pending, self._acknowledgement, self._waiting.discard)
            self._waiting.add(waiting)
        else:
            # Without an answer the plugin does what each verb needs: a DEL leaves a note, an ADD is to be tried again.
            connection.close()
            pending.fail(TooManyWaiting(f"{most} calls wait, and this agent allows no more: try again"))

    def _wait_for_request(self, connection: socket) -> None:
        assert self._port is not None
        if len(self._silent) >= self._port.most:
            self._drop(next(iter(self._silent)))
        timer = self._loop.call_later(self._port.limits.request_seconds, self._drop, connection)
        self._silent[connection] = timer
        self._loop.add_reader(connection, self._read, connection)

    def _drop(self, connection: socket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: socket) -> None:
        self._silent.pop(connection).cancel()
        self._loop.remove_reader(connection)


class _WaitingCall:
    """A call that waits, with its connection."""

    def __init__(
        self,
        connection: socket,
        pending: PendingCall,
        acknowledgement: bytes,
        ended: Callable[["_WaitingCall"], None],
    ) -> None:
        self._connection = connection
        self._pending = pending
        self._acknowledgement = acknowledgement
        self._is_acknowledged = False
        self._ended = ended
        self._loop = loop = asyncio.get_running_loop()
        self._timer = loop.call_later(ACKNOWLEDGE_AFTER_SECONDS, self._acknowledge)
        loop.add_reader(connection, self._disconnected)
        self.task = loop.create_task(self._answer())
        self.task.add_done_callback(self._end)

    def stop(self) -> None:
        """Refuse the call, because the agent stops."""
        if not self.task.done():
            self._respond(self._pending.refusal(STOPPING))
            self.task.cancel()

    async def _answer(self) -> None:
        self._respond(await self._pending.answer())

    def _acknowledge(self) -> None:
        self._is_acknowledged = True
        _send(self._connection, self._acknowledgement)

    def _disconnected(self) -> None:
        """The connection can be read: its end has come, or bytes that no plugin sends after its request."""
        self._loop.remove_reader(self._connection)
        self.task.cancel()

    def _respond(self, answer: Answer) -> None:
        self._timer.cancel()  # in a busy loop its moment may be over as well, and nothing follows an answer
        _send(self._connection, encode_answer(answer) if self._is_acknowledged else _response(answer))

    def _end(self, _task: "asyncio.Task[None]") -> None:
        self._loop.remove_reader(self._connection)
        self._timer.cancel()  # a call that was abandoned has no answer
        self._connection.close()
        self._pending.abandon()
        self._ended(self)


def _response(answer: Answer) -> bytes:
    content = encode_answer(answer)
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)


def _send(connection: socket, content: bytes) -> None:
    try:  # noqa: SIM105 - `suppress` is three calls, and every ADD comes by here
        connection.send(content)
    except OSError:
        pass  # the caller has disconnected


def _has_disconnected(connection: socket) -> bool:
    """Whether the caller is gone: an agent that was stopped for a while finds requests of plugins that have given up."""
    try:
        return not connection.recv(1, MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _whole_body(request: bytes) -> bytes | None:
    """The body of a plugin's request, if these bytes are one from the first to the last; else None."""
    head = _REQUEST.match(request)
    if head is None or len(request) - head.end() != int(head[1]):
        return None
    return request[head.end() :]
