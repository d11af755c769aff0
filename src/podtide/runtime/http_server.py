"""HTTP/1.1 for the connections of an OpenPort, on httptools' parser: a handler answers requests, whole ones, in their order.

For programs whose memory counts, because one runs on every node. What has pages, streams and uploads is served by aiohttp
(`http_port`), which is three times as much.

The handler begins with the head of a request, and its answer is sent when all of the request is here, so that no client is cut
off while it still speaks. A client that disconnects cancels the handler.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from socket import socket
from typing import cast
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url
from msgspec import Struct, field

from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, at_work, body_coming, listen
from podtide.runtime.port_limits import PortLimits

_BODY_SECONDS = PortLimits().request_seconds
_LAST_ANSWERS_SECONDS = 2.0
_MOST_HEAD_BYTES = 1 << 14
_logger = logging.getLogger("podtide.http")


class HttpResponse(Struct, frozen=True):
    """An answer."""

    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


def text_response(text: str, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    """An answer for people."""
    return HttpResponse(status, text.encode(), "text/plain; charset=utf-8")


class HttpRefusal(Exception):
    """Why a request has no other answer than this."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.response = text_response(text, status)


class BodyTooLong(HttpRefusal):
    """The body has more bytes than the server takes."""


class HttpRequest:
    """A request from its head on."""

    def __init__(self, connection: "_HttpConnection", path: str, headers: dict[str, str]) -> None:
        self.path = path
        self.headers = headers
        """By names in lower case."""
        self.method = connection.parser.get_method().decode()
        self.version = connection.parser.get_http_version()
        self.may_stay = connection.parser.should_keep_alive() and not connection.parser.should_upgrade()
        """Whether the connection may serve another request afterwards."""
        self.is_begun = False
        self._connection = connection
        self._pieces: list[bytes] = []
        self._length = 0
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def socket(self) -> socket | None:
        """The socket that it came by; None where the caller has disconnected."""
        transport = self._connection.transport
        return None if transport.is_closing() else transport.get_extra_info("socket")

    @property
    def is_whole(self) -> bool:
        """Whether all of it has come."""
        return self._whole.done() and not self._whole.cancelled() and self._whole.exception() is None

    async def read(self) -> bytes:
        """The body, if it comes in time and is not compressed: no client of ours compresses it."""
        await self.come()
        if self.headers.get("content-encoding", "identity") != "identity":
            words = "the request's body is encoded: send it without Content-Encoding"
            raise HttpRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, words)
        if self._length > (most := self._connection.most_body_bytes):
            raise BodyTooLong(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {most} bytes: send less"
            )
        return b"".join(self._pieces)

    async def come(self) -> None:
        """Wait until all of it is here; HttpRefusal where it does not come, or is not HTTP."""
        if not self._whole.done() and self.headers.get("expect", "").lower() == "100-continue":
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            with body_coming():
                async with asyncio.timeout(_BODY_SECONDS):
                    await asyncio.shield(self._whole)
        except TimeoutError:
            raise HttpRefusal(HTTPStatus.REQUEST_TIMEOUT, "the request's body did not come") from None

    def begin(self, headers: Mapping[str, str]) -> None:
        """Send the head of the answer, before its body is known."""
        self.is_begun = True
        chunked = {"Transfer-Encoding": "chunked"} if self.version == "1.1" else {}
        self.may_stay = self.may_stay and bool(chunked)
        self._connection.transport.write(self._head(HTTPStatus.OK, {**headers, **chunked}))

    def answer(self, response: HttpResponse) -> None:
        """Send the answer, or after `begin` its body."""
        self.may_stay = self.may_stay and self.is_whole
        content = b"" if self.method == "HEAD" else response.body
        if not self.is_begun:
            lines = {"Content-Type": response.content_type, "Content-Length": str(len(response.body))}
            content = self._head(response.status, {**lines, **response.headers}) + content
        elif self.version == "1.1":
            content = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
        self._connection.transport.write(content)

    def _head(self, status: HTTPStatus, headers: Mapping[str, str]) -> bytes:
        kept = {"Connection": "keep-alive" if self.may_stay else "close"}
        lines = [f"HTTP/{self.version} {status.value} {status.phrase}"]
        lines += [f"{name}: {value}" for name, value in {**headers, **kept}.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    # From the connection

    def take(self, body: bytes) -> None:
        """Some of the body has come."""
        if self._whole.done():
            return
        self._length += len(body)
        if self._length > self._connection.most_body_bytes:
            self._pieces.clear()
        else:
            self._pieces.append(body)

    def end(self) -> None:
        """All of it has come."""
        if not self._whole.done():
            self._whole.set_result(None)

    def fail(self, refusal: HttpRefusal) -> None:
        """The rest of it will not come."""
        if not self._whole.done():
            self._whole.set_exception(refusal)
            self._whole.exception()  # it may be awaited or not


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class HttpServer:
    """The protocols of connections that one handler answers."""

    def __init__(self, handler: Handler, *, most_body_bytes: int) -> None:
        self.handler = handler
        self.most_body_bytes = most_body_bytes
        self._connections: set[_HttpConnection] = set()

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        return _HttpConnection(self)

    def know(self, connection: "_HttpConnection") -> None:
        """The connection is open."""
        self._connections.add(connection)

    def forget(self, connection: "_HttpConnection") -> None:
        """The connection is closed."""
        self._connections.discard(connection)

    async def close(self) -> None:
        """Close all connections; requests in flight are answered before, if that takes no more than a moment."""
        serving = [task for each in self._connections if (task := each.stop()) is not None]
        if serving:
            await asyncio.wait(serving, timeout=_LAST_ANSWERS_SECONDS)
        for connection in tuple(self._connections):
            connection.transport.abort()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


class _HttpConnection(asyncio.Protocol):
    """One connection: its requests in their order."""

    def __init__(self, server: HttpServer) -> None:
        self.transport: asyncio.Transport
        self.parser = HttpRequestParser(self)
        self.most_body_bytes = server.most_body_bytes
        self._server = server
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        """What came of a head, or of a trailer."""
        self._is_too_long = False
        """A head was too long: what follows it is not answered."""
        self._requests: deque[HttpRequest] = deque()
        """The first is being answered, the last is coming in."""
        self._serving: asyncio.Task[None] | None = None
        self._is_over = False
        self._writable = asyncio.Event()
        self._writable.set()

    def stop(self) -> "asyncio.Task[None] | None":
        """Answer no more requests than the one in flight; the task that does."""
        self._is_over = True
        if self._serving is None:
            self.transport.close()
        return self._serving

    async def _serve(self) -> None:
        while self._requests:
            request = self._requests[0]
            with at_work():
                await self._answer(request)
                await self._writable.wait()
            self._requests.popleft()
            if not request.is_whole:
                self._hang_up()
                break
            if self._is_over or not request.may_stay:
                self.transport.close()
                break
            self.transport.resume_reading()
        self._serving = None

    async def _answer(self, request: HttpRequest) -> None:
        try:
            response = await self._server.handler(request)
            await request.come()
        except HttpRefusal as refusal:
            response = refusal.response
        except Exception:
            _logger.exception("a request could not be answered")
            if request.is_begun:
                self.transport.abort()
                return
            response = text_response("the server failed: see its log", HTTPStatus.INTERNAL_SERVER_ERROR)
        request.answer(response)

    def _malformed(self, words: str) -> None:
        """Answer the client's fault, after the requests before it."""
        _logger.warning("malformed HTTP was answered with 400")
        self._is_over = True
        refusal = HttpRefusal(HTTPStatus.BAD_REQUEST, words)
        if self._requests:
            self._requests[-1].fail(refusal)
            return
        body = refusal.response.body
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self._hang_up()

    def _hang_up(self) -> None:
        """Say no more, and ignore the rest of what the client says: closed before, it might not get its answer."""
        self._is_over = True
        self._requests.clear()
        if not self.transport.is_closing():
            self.transport.write_eof()

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._server.know(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over and not self._requests:
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade:
            pass  # the request is answered, and its connection closed
        except HttpParserError:
            self._malformed("the request is not valid HTTP: check its head, its length and its chunks\n")
            return
        if self._is_too_long or self._head_bytes > _MOST_HEAD_BYTES:
            self._malformed(f"the request's head has more than {_MOST_HEAD_BYTES >> 10} KiB: send less\n")
        elif len(self._requests) > 1 and self.transport.is_reading():
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._server.forget(self)
        self._writable.set()
        if self._serving is not None:
            self._serving.cancel()

    # From the parser

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        length = len(self._url) + sum(map(len, self._headers)) + sum(map(len, self._headers.values()))
        self._head_bytes = 0
        self._is_too_long = self._is_too_long or length > _MOST_HEAD_BYTES
        if self._is_over or self._is_too_long:
            return
        request = HttpRequest(self, unquote(parse_url(self._url).path.decode("latin-1")), self._headers)
        self._requests.append(request)
        if self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._serve())

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        if self._requests:
            self._requests[-1].take(body)

    def on_message_complete(self) -> None:
        if self._requests:
            self._requests[-1].end()


@asynccontextmanager
async def serving_http(
    handler: Handler, address: ListenAddress, *, limits: PortLimits, most_body_bytes: int = 0
) -> AsyncIterator[ListenAddress]:
    """Serve at the address that this yields until the context ends; requests in flight are still answered."""
    listener = listen(address, limits)
    port: int = listener.getsockname()[1]
    server = HttpServer(handler, most_body_bytes=most_body_bytes)
    opened = OpenPort(listener, server, limits=limits)
    opened.open()
    try:
        yield ListenAddress(address.host, port)
    finally:
        await opened.close()
        await server.close()


def routed(routes: Mapping[tuple[str, str], Handler]) -> Handler:
    """The handler that answers by method and path, a HEAD as a GET."""
    paths = {path for _, path in routes}

    async def handle(request: HttpRequest) -> HttpResponse:
        method = "GET" if request.method == "HEAD" else request.method
        if handler := routes.get((method, request.path)):
            return await handler(request)
        if request.path not in paths:
            return text_response("404: Not Found", HTTPStatus.NOT_FOUND)
        allowed = ", ".join(method for method, path in routes if path == request.path)
        return HttpResponse(
            HTTPStatus.METHOD_NOT_ALLOWED, b"405: Method Not Allowed", "text/plain", {"Allow": allowed}
        )

    return handle
