"""The HTTP server around the service: from listening to the last answer.

Nothing here touches the database or signals: whoever opened the one closes it, after the last answer, and decides
what the other mean.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from podtide.allocator.service.application import Service
from podtide.allocator.service.certificate import Certificate
from podtide.allocator.service.work import BodyDeadline
from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, listen
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
    """Serve, at the URL that this yields, until the context ends; then requests under way are answered, and no others."""
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


def _protocols(server: uvicorn.Server) -> Callable[[], asyncio.Protocol]:
    return lambda: _BoundedHeads(
        config=server.config, server_state=server.server_state, app_state=server.lifespan.state
    )


class _BoundedHeads(HttpToolsProtocol):
    """The server's protocol for one connection, which takes little of a request besides its body.

    httptools keeps a head, and what may follow a body in chunks, however long it is: anybody could fill the memory.
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
