"""`/healthz` and `/metrics` for a program that serves nothing else."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from podtide.runtime.listening import ListenAddress, cannot_listen


@asynccontextmanager
async def serving_health(
    address: ListenAddress, *, is_running: Callable[[], bool], metrics: Callable[[], bytes]
) -> AsyncIterator[ListenAddress]:
    """Serve both, at the address that this yields, until the context ends."""

    async def health(_request: web.Request) -> web.Response:
        if is_running():
            return web.Response(text="ok")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="the program has ended")

    async def measured(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes([web.get("/healthz", health), web.get("/metrics", measured)])
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
