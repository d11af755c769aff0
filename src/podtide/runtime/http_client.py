"""HTTP/1.1 to one server, on httptools' parser: connections that are used again, TLS, and a proxy on the way.

An agent runs on every node, and a client library with cookies, redirects, forms and web sockets takes 14 MB of each. An API
server is asked for answers and for streams, and nothing is sent twice.

Limits of time are the caller's: whatever ends a wait early, a timeout too, closes the connection.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import cast
from urllib.parse import SplitResult, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

_MOST_HEAD_BYTES = 1 << 16
_READ_AHEAD_BYTES = 1 << 18
_POOLED_SECONDS = 30.0
"""Servers and load balancers drop an idle connection after a minute or more. We drop it first."""
_NEXT_ADDRESS_SECONDS = 0.25
"""After which another address of the server is tried beside the first one (RFC 8305)."""
_PROBE_AFTER_SECONDS = 5
_PROBE_EVERY_SECONDS = 3
_PROBES = 3
_PORTS = {"http": 80, "https": 443}


class Unreachable(OSError):
    """No connection could be made; the cause says why."""


class ProxyUnreachable(Unreachable):
    """No connection could be made to the proxy."""


class ProxyRefused(OSError):
    """The proxy did not connect us to the server."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class Disconnected(OSError):
    """The connection ended before the answer."""


class BrokenAnswer(OSError):
    """The connection ended within the answer."""


class NotHttp(OSError):
    """What came is not HTTP, or its head is too long."""


class HttpDestination(Struct, frozen=True, kw_only=True):
    """Where requests go. The URL may have a path, which comes before that of each request."""

    url: str
    proxy: str = ""
    proxy_authorization: str = ""


class HttpAnswer:
    """The answer to one request: its head, and its body as it comes."""

    def __init__(self, connection: "_Connection", *, is_of_tunnel: bool = False) -> None:
        """An answer to CONNECT, `is_of_tunnel`, has no body if the proxy agrees, whatever its headers say (RFC 9110, 9.3.6)."""
        self.status = 0
        """0 until the head has come."""
        self.headers: dict[str, str] = {}
        """By names in lower case."""
        self._connection = connection
        self._is_of_tunnel = is_of_tunnel
        self._parser = HttpResponseParser(self)
        self._head_bytes = 0
        """What came since the last byte of a body: of a head and a trailer."""
        self._pieces: list[bytes] = []
        self._unread_bytes = 0
        self._read_ahead_bytes: float = _READ_AHEAD_BYTES
        self._is_whole = False
        self._failure: Exception | None = None
        self._progress = asyncio.Event()

    async def head(self) -> None:
        """Wait for the status and the headers."""
        while not self.status:
            await self._more()

    async def read(self) -> bytes:
        """The whole body."""
        self._read_ahead_bytes = float("inf")
        self._connection.resume_reading()
        try:
            while not self._is_whole:
                await self._more()
        finally:
            self.close()
        return b"".join(self._pieces)

    async def pieces(self, silence_seconds: float) -> AsyncGenerator[bytes, None]:
        """The body as it comes; TimeoutError when nothing comes for so long."""
        while self._pieces or not self._is_whole:
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces.clear()
                self._unread_bytes = 0
                self._connection.resume_reading()
                yield piece
            else:
                async with asyncio.timeout(silence_seconds):
                    await self._more()

    def close(self) -> None:
        """Drop the connection without a goodbye, unless the answer is whole: a dead peer would not hear it."""
        if not self._is_whole:
            self._connection.abort()

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._progress.clear()
        await self._progress.wait()

    # From the connection

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.fail(NotHttp())
        if self._head_bytes > _MOST_HEAD_BYTES:
            self.fail(NotHttp())
        if self._unread_bytes > self._read_ahead_bytes and not self._is_whole:
            self._connection.pause_reading()
        self._progress.set()

    def fail(self, failure: Exception) -> None:
        """Nothing more comes, unless the answer is whole."""
        if not self._is_whole and self._failure is None:
            self._failure = failure
            self._connection.abort()
            self._progress.set()

    def disconnected(self, error: Exception | None) -> None:
        """The connection has ended."""
        if (
            self.status
            and error is None
            and not self.headers.keys() & {"content-length", "transfer-encoding"}
        ):
            self._is_whole = True  # as an answer without a length does
            self._progress.set()
        elif self.status:
            self.fail(BrokenAnswer())
        else:
            self.fail(error or Disconnected())

    # From the parser

    def on_message_begin(self) -> None:
        """Another answer, which nothing asked for, may not follow."""
        if self._is_whole:
            self._connection.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of a trailer."""
        if not self.status:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The end of a head."""
        self._head_bytes = 0
        if (status := self._parser.get_status_code()) >= HTTPStatus.OK:
            self.status = status
        else:
            self.headers.clear()  # the head of the answer itself follows

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        if not self._is_whole:
            self._head_bytes = 0
            self._pieces.append(body)
            self._unread_bytes += len(body)

    def on_message_complete(self) -> None:
        """The end of the answer."""
        if self.status and not self._is_whole and not (self._is_of_tunnel and self.status == HTTPStatus.OK):
            self._is_whole = True
            self._connection.finish(is_reusable=self._parser.should_keep_alive())


class _Connection(asyncio.Protocol):
    """A connection, and the answer that it waits for."""

    def __init__(self, client: "HttpClient", tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self.transport: asyncio.Transport | None = None
        self._client = client
        self._answer: HttpAnswer | None = None
        self._is_aborted = False
        self._expiry: asyncio.TimerHandle | None = None

    def ask(self, request: bytes, *, for_tunnel: bool = False) -> HttpAnswer:
        """Send a request; the connection must be idle."""
        self._stay()
        answer = self._answer = HttpAnswer(self, is_of_tunnel=for_tunnel)
        if self.transport is None:
            answer.fail(Disconnected())
        else:
            self.transport.write(request)
        return answer

    def finish(self, *, is_reusable: bool) -> None:
        """The answer is whole: keep the connection for the next request, if it may be kept."""
        self._answer = None
        if is_reusable and self.transport is not None and not self.transport.is_closing():
            self.resume_reading()
            self._expiry = asyncio.get_running_loop().call_later(_POOLED_SECONDS, self.abort)
            self._client.keep(self)
        else:
            self.abort()

    async def secure(self, server_name: str) -> None:
        """Speak TLS from here on."""
        assert self.tls is not None
        if self.transport is None:
            raise Unreachable
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(self.transport, self, self.tls, server_hostname=server_name)
        except (ssl.SSLError, TimeoutError):
            raise
        except OSError as error:
            raise Unreachable from error
        self.transport = transport

    def leave_to_server(self) -> None:
        """What was asked was for the proxy, which says no more."""
        self._answer = None
        self._stay()
        self._client.take(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_aborted = True
        self._client.forget(self)
        self._stay()
        if self.transport is not None:
            self.transport.abort()

    def pause_reading(self) -> None:
        """Let the server wait until what came is read."""
        if self.transport is not None and self.transport.is_reading():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.transport is not None and not self.transport.is_reading() and not self.transport.is_closing():
            self.transport.resume_reading()

    def _stay(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._client.know(self)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.abort()  # nothing was asked
        else:
            self._answer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self._answer is not None:
            self._answer.disconnected(error or (Disconnected() if self._is_aborted else None))
        self.abort()


class HttpClient:
    """Requests to one server."""

    def __init__(self, server: HttpDestination, *, connect_seconds: float) -> None:
        """`connect_seconds` is the limit for a connection to be made, handshake included."""
        self._server = server
        self._url = urlsplit(server.url)
        self.is_tls = self._url.scheme == "https"
        """Whether requests need a context for TLS, by the URL's scheme in any spelling."""
        self._connect_seconds = connect_seconds
        self._connections: set[_Connection] = set()
        self._idle: list[_Connection] = []
        """The one used last is the last."""

    async def send(  # noqa: PLR0913 - what a request consists of, and how it gets there
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
    ) -> HttpAnswer:
        """Send a request, and wait for the head of its answer. ValueError where it cannot be written."""
        if self.is_tls is not (tls is not None):
            raise ValueError("TLS is for servers whose URL says https, and for all of those")
        url = self._url
        lines = {"Host": _authority(url), **headers}
        if body is not None:
            lines["Content-Length"] = str(len(body))
        target = url.path + target
        if self._server.proxy and tls is None:
            target = f"http://{_authority(url)}{target}"
            lines |= self._proof_for_proxy()
        request = _head(method, target, lines) + (body or b"")
        connection = self._idle_one(tls) or await self._connect(url, tls, server_name)
        answer = connection.ask(request)
        try:
            await answer.head()
        except BaseException:
            answer.close()  # not the connection: when the answer is whole, another request may have it already
            raise
        return answer

    def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._connections):
            connection.abort()

    def keep(self, connection: _Connection) -> None:
        """Use the connection for a next request."""
        self._idle.append(connection)

    def take(self, connection: _Connection) -> None:
        """The connection is in use, or is closed."""
        if connection in self._idle:
            self._idle.remove(connection)

    def know(self, connection: _Connection) -> None:
        """Close the connection with the client."""
        self._connections.add(connection)

    def forget(self, connection: _Connection) -> None:
        """The connection is closed."""
        self._connections.discard(connection)
        self.take(connection)

    def _idle_one(self, tls: ssl.SSLContext | None) -> _Connection | None:
        for connection in reversed(self._idle):
            if connection.tls is tls:
                self.take(connection)
                return connection
        return None

    async def _connect(self, url: SplitResult, tls: ssl.SSLContext | None, server_name: str) -> _Connection:
        proxy = urlsplit(self._server.proxy) if self._server.proxy else None
        try:
            addresses = await _addresses(proxy or url)
            async with asyncio.timeout(self._connect_seconds):
                connection = await self._open(addresses, tls)
        except TimeoutError:
            raise
        except OSError as error:
            raise (ProxyUnreachable if proxy else Unreachable) from error
        if tls is None:
            return connection
        try:
            if proxy is not None:
                await self._tunnel(connection, url)
            async with asyncio.timeout(self._connect_seconds):
                await connection.secure(server_name or url.hostname or "")
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _open(self, addresses: list[AddrInfoType], tls: ssl.SSLContext | None) -> _Connection:
        opened = await start_connection(
            addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=_socket
        )
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: _Connection(self, tls), sock=opened))[1]

    async def _tunnel(self, connection: _Connection, url: SplitResult) -> None:
        """Have the proxy connect us to the server, so that TLS is between us and the server alone."""
        place = _authority(url) if url.port is not None else f"{_authority(url)}:{_PORTS[url.scheme]}"
        request = _head("CONNECT", place, {"Host": place, **self._proof_for_proxy()})
        answer = connection.ask(request, for_tunnel=True)
        await answer.head()
        if answer.status != HTTPStatus.OK:
            raise ProxyRefused(answer.status)
        connection.leave_to_server()

    def _proof_for_proxy(self) -> dict[str, str]:
        proof = self._server.proxy_authorization
        return {"Proxy-Authorization": proof} if proof else {}


def _authority(url: SplitResult) -> str:
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{url.port}" if url.port is not None else host


def _head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if " " in target or not all(line.isprintable() for line in lines):
        raise ValueError("a line of the request cannot be written")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _addresses(url: SplitResult) -> list[AddrInfoType]:
    host, port = url.hostname, url.port or _PORTS[url.scheme]
    try:  # one that is a number already needs no thread to look it up
        return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]
    except socket.gaierror:
        return [*await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    _keep_alive(connection)
    return connection


def _keep_alive(connection: socket.socket) -> None:
    """Have the kernel probe a quiet peer, and give up on one that does not acknowledge."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere the machine's defaults must do
        dead_after_seconds = _PROBE_AFTER_SECONDS + _PROBES * _PROBE_EVERY_SECONDS
        for option, value in (
            (socket.TCP_KEEPIDLE, _PROBE_AFTER_SECONDS),
            (socket.TCP_KEEPINTVL, _PROBE_EVERY_SECONDS),
            (socket.TCP_KEEPCNT, _PROBES),
            (socket.TCP_USER_TIMEOUT, dead_after_seconds * 1000),
        ):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
