"""`/healthz`, `/readyz` and `/metrics` for whoever looks after a program, and nothing else."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from podtide.runtime.listening import ListenAddress, cannot_listen


@asynccontextmanager
async def serving_health(
    address: ListenAddress,
    *,
    is_running: Callable[[], bool],
    metrics: Callable[[], bytes],
    unreadiness: Callable[[], str] = str,
) -> AsyncIterator[ListenAddress]:
    """Serve them, at the address that this yields, until the context ends. `unreadiness` is "" once it is ready."""

    async def health(_request: web.Request) -> web.Response:
        return _verdict("" if is_running() else "the program has ended")

    async def readiness(_request: web.Request) -> web.Response:
        return _verdict(unreadiness())

    async def measured(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes(
        [web.get("/healthz", health), web.get("/readyz", readiness), web.get("/metrics", measured)]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except OSError as error:
            raise cannot_listen(address, error) from error
        yield ListenAddress(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _verdict(objection: str) -> web.Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return web.Response(status=status, text=objection or "ok")
