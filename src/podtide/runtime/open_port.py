"""A listening socket whose connections are limited, whatever HTTP server answers them.

Neither of the servers in use limits how many connections there are, nor, on every path, how long a request may take to
come. So connections are accepted here, one per turn of the event loop, so that ports take turns; each is handed to
the server's protocol with a watcher around it that knows four states:

    waiting   nothing of the next request has come: closed after `idle_seconds`, a new connection after `request_seconds`
    speaking  some of it has come: closed `request_seconds` after its first byte, however it trickles
    half said the application has the head and waits for the body (`body_coming`), for as long as it sees fit
    at work   the application answers (`at_work`): left alone

When all places are taken, a newcomer gets that of the connection which has been waited for longest: an honest client
speaks at once and to the end, so a flood of silent connections, or of halves of requests, displaces itself. Only where
all are at work is the newcomer refused.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from errno import ECONNABORTED
from math import inf
from socket import AF_INET, AF_INET6, AF_UNIX, IPPROTO_TCP, TCP_USER_TIMEOUT, create_server, socket
from typing import cast

from podtide.runtime.listening import ListenAddress, cannot_listen
from podtide.runtime.port_limits import PortLimits, most_connections

Server = Callable[[], asyncio.Protocol]
"""Makes the protocol that answers one connection."""

_log = logging.getLogger(__name__)
"""Standard logging, as for any library: a port belongs to programs with different loggers, or none."""

_BACKLOG = 4096
"""Who waits to be accepted costs us nothing; who finds no room there comes again only after a second."""
_PAUSE_SECONDS = 1.0
_TELLING_SECONDS = 10.0
"""What a port does in need is told at most once in so long, with how often it was."""

_current: ContextVar["_Connection | None"] = ContextVar("connection", default=None)


def listen(address: ListenAddress, limits: PortLimits) -> socket:
    """A socket that listens on this address."""
    family = AF_INET6 if ":" in address.host else AF_INET
    try:
        listener = create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise cannot_listen(address, error) from error
    listener.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, int(limits.unread_seconds * 1000))
    return listener


@contextmanager
def at_work() -> Iterator[None]:
    """A context for the application while it answers a request: its connection does not count as idle meanwhile."""
    connection = _current.get()
    if connection is None:
        yield
        return
    connection.begin_work()
    try:
        yield
    finally:
        connection.end_work()


@contextmanager
def body_coming() -> Iterator[None]:
    """A context for the application, within `at_work`, while it waits for the body from the client.

    How long that may last is the application's to say, for it can still tell the client.
    """
    connection = _current.get()
    if connection is None:
        yield
        return
    connection.await_body()
    try:
        yield
    finally:
        connection.have_body()


class OpenPort:
    """Accepts the connections of one listener, and limits them. The listener is closed with it."""

    def __init__(
        self, listener: socket, server: Server, *, limits: PortLimits, tls: ssl.SSLContext | None = None
    ) -> None:
        self._listener = listener
        self._server = server
        self.limits = limits
        self.most = most_connections(limits)
        self._tls = tls
        self._meet: Callable[[socket], None] = self.admit
        self._loop = asyncio.get_running_loop()
        self._name = _name(listener)
        self._connections: set[_Connection] = set()
        self._waiting: dict[_Connection, None] = {}
        """Who is waited for, in the order in which that began."""
        self._troubles: dict[str, int] = {}
        self._telling: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._resuming: asyncio.TimerHandle | None = None

    def open(self, meet: Callable[[socket], None] | None = None) -> None:
        """Accept connections from now on. With `meet`, each is handed over first, to be admitted."""
        self._meet = meet or self.admit
        self._listener.setblocking(False)
        self._listen()

    async def close(self) -> None:
        """Accept no more connections. Those accepted are the server's to end."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for timer in (self._resuming, self._telling, self._sweeping):
            if timer is not None:
                timer.cancel()
        starting = [connection.starting for connection in self._connections if not connection.starting.done()]
        if self._tls is not None:
            for task in starting:
                task.cancel()  # a handshake in flight is not a request yet
        if starting:
            await asyncio.wait(starting)

    def drop_connections(self) -> None:
        """Close what is still open, when the server has had its time."""
        for connection in tuple(self._connections):
            connection.drop()

    def admit(self, accepted: socket, received: bytes = b"") -> None:
        """Let the server answer this connection, of which these bytes were read already."""
        if len(self._connections) >= self.most and not self._make_room():
            self._trouble("connections refused: the limit is reached, and all have requests in flight")
            accepted.close()
            return
        connection = _Connection(self, self._server(), self._loop)
        self._connections.add(connection)
        self.now_waiting(connection, self.limits.request_seconds)
        connection.start(accepted, received, self._tls)
        if self._sweeping is None:
            self._plan_sweep()

    # What connections say of themselves

    def now_waiting(self, connection: "_Connection", seconds: float) -> None:
        """Record that the connection waits for the client, at most so many seconds."""
        if connection in self._connections:
            connection.deadline = self._loop.time() + seconds
            self._waiting[connection] = None

    def now_speaking(self, connection: "_Connection") -> None:
        """Record that the client has begun a request, which it must finish in time. It keeps its place in the order."""
        connection.deadline = min(connection.deadline, self._loop.time() + self.limits.request_seconds)

    def now_working(self, connection: "_Connection") -> None:
        """Record that the connection waits for the application."""
        self._waiting.pop(connection, None)

    def gone(self, connection: "_Connection") -> None:
        """Record that the connection is closed."""
        self._connections.discard(connection)
        self._waiting.pop(connection, None)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            if error.errno != ECONNABORTED:
                self._trouble(f"cannot accept connections ({error.strerror}); will try again")
                self._loop.remove_reader(self._listener)
                self._resuming = self._loop.call_later(_PAUSE_SECONDS, self._listen)
            return
        accepted.setblocking(False)
        self._meet(accepted)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _make_room(self) -> bool:
        longest = next(iter(self._waiting), None)
        if longest is None:
            return False
        self._trouble("idle connections closed to make room for new ones")
        longest.drop()
        return True

    def _plan_sweep(self) -> None:
        self._sweeping = self._loop.call_later(min(1.0, self.limits.request_seconds / 4), self._sweep)

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in [each for each in self._waiting if each.deadline <= now]:
            connection.drop()
        self._sweeping = None
        if self._connections:
            self._plan_sweep()

    def _trouble(self, words: str) -> None:
        """Log trouble with connections at once, and then only count it for a while."""
        if self._telling is not None:
            self._troubles[words] = self._troubles.get(words, 0) + 1
            return
        _log.warning("%s: %s", self._name, words)
        self._telling = self._loop.call_later(_TELLING_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        if self._troubles:
            for words, times in self._troubles.items():
                _log.warning("%s: %s (%d times in %d s)", self._name, words, times, _TELLING_SECONDS)
            self._troubles.clear()
            self._telling = self._loop.call_later(_TELLING_SECONDS, self._tell)


class _Connection(asyncio.Protocol):
    """A connection around its server's protocol."""

    def __init__(self, port: OpenPort, server: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._server = server
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._speaking = False
        self._working = 0
        self.deadline = 0.0
        self._context = (
            copy_context()
        )  # the server's tasks inherit it, and `at_work` finds the connection in it
        self._context.run(_current.set, self)

    def start(self, accepted: socket, received: bytes, tls: ssl.SSLContext | None) -> None:
        """Hand the connection to the server."""
        self.starting = self._loop.create_task(self._start(accepted, received, tls))
        self.starting.add_done_callback(lambda _: self._see_to(accepted))

    def _see_to(self, accepted: socket) -> None:
        """Close the connection if no server has taken it."""
        if self._transport is None:
            accepted.close()
            self._port.gone(self)

    async def _start(self, accepted: socket, received: bytes, tls: ssl.SSLContext | None) -> None:
        handshake_seconds = self._port.limits.request_seconds if tls is not None else None
        with suppress(OSError):  # it has gone, or speaks no TLS
            await self._loop.connect_accepted_socket(
                lambda: self, accepted, ssl=tls, ssl_handshake_timeout=handshake_seconds
            )
            if received:
                self.data_received(received)

    def drop(self) -> None:
        """Close the connection at once."""
        self._port.gone(self)
        if self._transport is None:
            self.starting.cancel()
        else:
            self._transport.abort()

    # Between the application and the port

    def begin_work(self) -> None:
        """Record that the application has a request."""
        self._working += 1
        self._port.now_working(self)

    def end_work(self) -> None:
        """Record that the application has answered."""
        self._working -= 1
        if not self._working:
            self._speaking = False
            self._port.now_waiting(self, self._port.limits.idle_seconds)

    def await_body(self) -> None:
        """Record that the application waits for the rest of a request."""
        self._port.now_waiting(self, inf)

    def have_body(self) -> None:
        """Record that the application has the whole request, or has given it up."""
        self._port.now_working(self)

    # Between the transport and the server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._context.run(self._server.connection_made, transport)

    def data_received(self, data: bytes) -> None:
        if not self._speaking and not self._working:
            self._speaking = True
            self._port.now_speaking(self)
        self._context.run(self._server.data_received, data)

    def eof_received(self) -> bool | None:
        return self._server.eof_received()

    def pause_writing(self) -> None:
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._server.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._port.gone(self)
        self._server.connection_lost(error)


def _name(listener: socket) -> str:
    place = listener.getsockname()
    return place if listener.family == AF_UNIX else str(ListenAddress(place[0], place[1]))
