"""The HTTP server around the service: from listening to the last answer.

Nothing here touches the database or signals: whoever opened the one closes it, after the last answer, and decides
what the other mean.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from podtide.allocator.service.application import Service
from podtide.allocator.service.certificate import Certificate
from podtide.runtime.listening import ListenAddress, cannot_listen

_LAST_ANSWERS_SECONDS = 15
_IDLE_SECONDS = 75
"""Longer than clients keep idle connections, so that it is they who close them and no request meets a closed door."""
_BACKLOG = 2048


@asynccontextmanager
async def serving(
    service: Service, address: ListenAddress, certificate: Certificate | None = None
) -> AsyncIterator[str]:
    """Serve, at the URL that this yields, until the context ends; then requests under way are answered, and no others."""
    with _listen(address) as listener:
        config = uvicorn.Config(
            service.application,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
            ssl_context_factory=(lambda *_: certificate.context()) if certificate else None,
        )
        # What `uvicorn.Server.serve` does, without its signal handlers: they are not the server's to decide on.
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        ticking = asyncio.create_task(server.main_loop())
        try:
            scheme = "https" if certificate else "http"
            yield f"{scheme}://{ListenAddress(address.host, listener.getsockname()[1])}"
        finally:
            service.operations.readiness.stopping = True
            ticking.cancel()
            await server.shutdown(sockets=[listener])


def _listen(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise cannot_listen(address, error) from error
