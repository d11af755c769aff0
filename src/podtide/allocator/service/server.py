"""The HTTP server around the service: from listening to the last answer.

Nothing here touches the database or signals: the caller opens the database, closes it after the last answer, and
handles signals.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import uvicorn
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from podtide.allocator.service.application import Service
from podtide.allocator.service.certificate import Certificate
from podtide.core.errors import InvalidInput
from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, at_work, body_coming, listen
from podtide.runtime.port_limits import PortLimits

_LAST_ANSWERS_SECONDS = 15
LIMITS = PortLimits(connections=2048)
"""Many clusters share an allocator, and each keeps connections to it."""
MOST_HEAD_BYTES = 1 << 16


@asynccontextmanager
async def serving(
    service: Service,
    address: ListenAddress,
    certificate: Certificate | None = None,
    limits: PortLimits = LIMITS,
) -> AsyncIterator[str]:
    """Serve at the URL that this yields until the context ends; then requests in flight are answered, and no others."""
    with listen(address, limits) as listener:
        url = (
            f"{'https' if certificate else 'http'}://{ListenAddress(address.host, listener.getsockname()[1])}"
        )
        config = uvicorn.Config(
            BodyDeadline(service.application, limits.request_seconds),
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(limits.idle_seconds),
            timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
        )
        # What `uvicorn.Server.serve` does, without its signal handlers, which are not the server's to decide on, and
        # without its listening: it limits neither connections nor how long a request may take to come.
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[])
        port = OpenPort(
            listener, _protocols(server), limits=limits, tls=certificate.context() if certificate else None
        )
        port.open()
        ticking = asyncio.create_task(server.main_loop())
        try:
            yield url
        finally:
            service.operations.readiness.stopping = True
            ticking.cancel()
            await port.close()
            await server.shutdown(sockets=[])
            port.drop_connections()  # the server leaves those whose request was not answered in time


def _protocols(server: uvicorn.Server) -> Callable[[], asyncio.Protocol]:
    return lambda: _BoundedHeads(
        config=server.config, server_state=server.server_state, app_state=server.lifespan.state
    )


class _BoundedHeads(HttpToolsProtocol):
    """The server's protocol for one connection, with a limit on all of a request besides its body.

    httptools keeps a head, and what may follow a body in chunks, however long it is: any client could fill the
    memory.
    """

    def __init__(self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config=config, server_state=server_state, app_state=app_state)
        self._unfinished_bytes = 0
        """What came of the request besides its body; of the bytes that came last, at most too many are counted to it."""
        self._is_too_long = False

    def data_received(self, data: bytes) -> None:
        if not self._is_too_long:  # else it was read before the connection was closed
            self._unfinished_bytes += len(data)
            super().data_received(data)
            self._refuse_what_is_too_long()

    def _refuse_what_is_too_long(self) -> None:
        if self._is_too_long or self._unfinished_bytes > MOST_HEAD_BYTES:
            self._is_too_long = True
            self.logger.warning("A request's head was too long, and its connection was closed.")
            self.send_400_response(f"the request's head has more than {MOST_HEAD_BYTES >> 10} KiB: send less")

    def on_headers_complete(self) -> None:
        length = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if length > MOST_HEAD_BYTES or self._is_too_long:  # it came at once, or behind one that did
            self._is_too_long = True
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_too_long:
            self._unfinished_bytes = max(0, self._unfinished_bytes - len(body))
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_too_long:
            self._unfinished_bytes = 0
            super().on_message_complete()


class UnfinishedBody(InvalidInput):
    """A client sent less than it announced. The framework would report that as an internal error."""


class BodyDeadline:
    """An ASGI middleware that tells the port when a request is being worked on, and limits the time for its body."""

    def __init__(self, app: ASGIApp, body_seconds: float) -> None:
        self._app = app
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        with at_work(), ExitStack() as until_whole:
            await self._app(scope, self._in_time(receive, until_whole), send)

    def _in_time(self, receive: Receive, until_whole: ExitStack) -> Receive:
        """The body's messages, until the deadline."""
        deadline = asyncio.get_running_loop().time() + self._body_seconds
        asked = False

        async def receive_in_time() -> HTTPReceiveMessage:
            nonlocal asked
            if not asked:
                asked = True  # once: a client that trickles its body is not a new one with every byte
                until_whole.enter_context(body_coming())
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise UnfinishedBody("the request's body did not come in time: send it at once") from None
            if message["type"] != "http.request":
                raise UnfinishedBody("the request's body ended early: send all that was announced")
            if not message["more_body"]:
                until_whole.close()
            return message

        return receive_in_time
