"""A port with `/healthz`, `/readyz` and `/metrics` only, for probes and Prometheus."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from podtide.runtime.http_port import serving_http
from podtide.runtime.listening import ListenAddress
from podtide.runtime.port_limits import PortLimits

_LIMITS = PortLimits(connections=128)
"""Enough for Prometheus, the kubelet's probes and a few people."""


@asynccontextmanager
async def serving_health(
    address: ListenAddress,
    *,
    is_running: Callable[[], bool],
    metrics: Callable[[], bytes],
    unreadiness: Callable[[], str] = str,
) -> AsyncIterator[ListenAddress]:
    """Serve them until the context ends; yields the address. `unreadiness` returns "" once the program is ready."""

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
    async with serving_http(application, address, limits=_LIMITS) as found:
        yield found


def _verdict(objection: str) -> web.Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return web.Response(status=status, text=objection or "ok")
