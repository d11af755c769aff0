"""The service put together: routes, authorization, errors as answers, logs and metrics."""

from functools import partial
from random import Random

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.types import ASGIApp
from msgspec import Struct

from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.service.callers import asked_allocator, recognise
from podtide.allocator.service.clusters import CLUSTER_ROUTES
from podtide.allocator.service.containers import CONTAINER_ROUTES
from podtide.allocator.service.metrics import AllocatorMetrics
from podtide.allocator.service.observation import RequestLog
from podtide.allocator.service.openapi import BEARER, openapi_route
from podtide.allocator.service.operations import OPERATION_ROUTES, Operations, Prove, ServiceReadiness
from podtide.allocator.service.refusals import error_handlers
from podtide.allocator.service.subnets import SUBNET_ROUTES
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.service.utilization import UtilizationCache
from podtide.allocator.wire import LARGEST_BODY_BYTES
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

DEFAULT_REFRESH_SECONDS = 1.0


class Service(Struct, frozen=True):
    """The ASGI application, and the switch that makes it unready before it stops."""

    application: ASGIApp
    operations: Operations


def make_service(  # noqa: PLR0913 - what the service runs in is handed to it
    allocator: AdministeredAllocator,
    *,
    log: Logger,
    clock: Clock,
    randomness: Random,
    tokens: Tokens | None = None,
    refresh_seconds: float = DEFAULT_REFRESH_SECONDS,
    prove: Prove | None = None,
) -> Service:
    """A service over an allocator; without tokens, for clients on this machine only.

    `prove` shows that the database takes writes; without it, readiness is that it answers.
    """
    metrics = AllocatorMetrics()
    readiness = ServiceReadiness(prove or partial(allocator.list_containers, limit=1), clock, log)
    operations = Operations(allocator, metrics, readiness)
    cache = UtilizationCache(allocator, clock, refresh_seconds)
    routers = [
        Router("/", route_handlers=OPERATION_ROUTES),
        Router(
            "/",
            route_handlers=[*SUBNET_ROUTES, *CONTAINER_ROUTES, *CLUSTER_ROUTES],
            middleware=[recognise(allocator, tokens)],
            security=[{BEARER: []}] if tokens else None,
        ),
    ]
    dependencies = {
        "allocator": Provide(asked_allocator, sync_to_thread=False),
        "log": Provide(lambda: log, sync_to_thread=False),
        "cache": Provide(lambda: cache, sync_to_thread=False),
        "operations": Provide(lambda: operations, sync_to_thread=False),
    }
    app = Litestar(
        [*routers, openapi_route(routers, dependencies)],
        dependencies=dependencies,
        exception_handlers=error_handlers(log),
        request_max_body_size=LARGEST_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )
    return Service(RequestLog(app, metrics, log, clock, randomness), operations)
