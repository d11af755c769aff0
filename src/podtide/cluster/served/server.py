"""The HTTP server around an embedded cluster: from listening to the last answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from podtide.cluster.embedded import ApiServer
from podtide.cluster.served.namespaces import make_standing_namespaces
from podtide.cluster.served.routes import make_application
from podtide.runtime.listening import ListenAddress, cannot_listen

_LAST_ANSWERS_SECONDS = 2.0


@asynccontextmanager
async def serving(server: ApiServer, address: ListenAddress) -> AsyncIterator[str]:
    """Serve the cluster, at the URL that this yields, until the context ends; then watches end, and answers are given.

    The cluster itself is whoever's it is, to be closed by them.
    """
    make_standing_namespaces(server)
    application = make_application(server)
    application.on_shutdown.append(_close_watches(server))
    # A client that goes away in the midst of a watch ends it: its handler is cancelled.
    runner = web.AppRunner(
        application, handler_cancellation=True, access_log=None, shutdown_timeout=_LAST_ANSWERS_SECONDS
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except OSError as error:
            raise cannot_listen(address, error) from error
        port = runner.addresses[0][1]
        yield f"http://{ListenAddress(address.host, port)}"
    finally:
        await runner.cleanup()


def _close_watches(server: ApiServer) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_application: web.Application) -> None:
        server.close_watches()

    return close
