"""A port with `/healthz`, `/readyz` and `/metrics` only, for probes and Prometheus."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST

from podtide.runtime.http_server import HttpRequest, HttpResponse, routed, serving_http, text_response
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

    async def health(_request: HttpRequest) -> HttpResponse:
        return _verdict("" if is_running() else "the program has ended")

    async def readiness(_request: HttpRequest) -> HttpResponse:
        return _verdict(unreadiness())

    async def measured(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(body=metrics(), content_type=CONTENT_TYPE_LATEST)

    handler = routed(
        {("GET", "/healthz"): health, ("GET", "/readyz"): readiness, ("GET", "/metrics"): measured}
    )
    async with serving_http(handler, address, limits=_LIMITS) as found:
        yield found


def _verdict(objection: str) -> HttpResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return text_response(objection or "ok", status)
