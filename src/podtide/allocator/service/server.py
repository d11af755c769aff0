"""The HTTP server around the service: from listening to the last answer.

Nothing here touches the database or signals: whoever opened the one closes it, after the last answer, and decides
what the other mean.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podtide.allocator.service.application import Service
from podtide.allocator.service.certificate import Certificate
from podtide.allocator.service.work import Working
from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, listen
from podtide.runtime.port_limits import PortLimits

_LAST_ANSWERS_SECONDS = 15
LIMITS = PortLimits(connections=2048)
"""Many clusters share an allocator, and each keeps connections to it."""


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
            Working(service.application, limits.request_seconds),
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
    return lambda: HttpToolsProtocol(
        config=server.config, server_state=server.server_state, app_state=server.lifespan.state
    )
