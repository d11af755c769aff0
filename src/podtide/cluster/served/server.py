"""The HTTP server around an embedded cluster: from listening to the last answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from podtide.cluster.embedded import ApiServer
from podtide.cluster.embedded.namespaces import make_namespaces
from podtide.cluster.served.kinds import STANDING_NAMESPACES
from podtide.cluster.served.routes import make_application
from podtide.runtime.http_port import serving_http
from podtide.runtime.listening import ListenAddress
from podtide.runtime.port_limits import PortLimits

_LIMITS = PortLimits(connections=8192)
"""Every watch is a connection, and every agent has a handful of them."""


@asynccontextmanager
async def serving(server: ApiServer, address: ListenAddress) -> AsyncIterator[str]:
    """Serve the cluster at the URL that this yields until the context ends; then watches end.

    Requests in flight are still answered. The cluster itself stays open: its owner closes it.
    """
    make_namespaces(server, STANDING_NAMESPACES)
    application = make_application(server)
    application.on_shutdown.append(_close_watches(server))
    async with serving_http(application, address, limits=_LIMITS) as found:
        yield f"http://{found}"


def _close_watches(server: ApiServer) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_application: web.Application) -> None:
        server.close_watches()

    return close
