"""The paths for operators: liveness, readiness and metrics. They need no token."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import SkipValidation

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.service.metrics import AllocatorMetrics
from podtide.allocator.terms import ClusterRegistry
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_TEXT = "text/plain"
_PROMETHEUS = "text/plain; version=1.0.0"
_DATABASE_SECONDS = 2.0
_PROOF_SECONDS = 5.0
_NO_ANSWER = "the database cannot be written"
_NOT_READY = {
    int(HTTPStatus.SERVICE_UNAVAILABLE): ResponseSpec(
        str, description="Why not", media_type=_TEXT, generate_examples=False
    )
}


Prove = Callable[[], Awaitable[object]]
"""Raises AllocatorError where the database cannot be used as the service uses it."""


class ServiceReadiness:
    """Whether the service is ready for requests.

    It is proven by a write, and asking needs no credential: so there is one proof at a time, and it holds for a few
    seconds.
    """

    def __init__(self, prove: Prove, clock: Clock, log: Logger) -> None:
        self._prove = prove
        self._clock = clock
        self._log = log
        self._proof: asyncio.Task[str] | None = None
        self._proved_at = -_PROOF_SECONDS
        self.stopping = False

    async def objection(self) -> str:
        """Why the service is not ready; "" when it is."""
        if self.stopping:
            return "stopping"
        if self._proof is None or (self._proof.done() and self._is_old(self._proof.result())):
            self._proof = asyncio.create_task(self._attempt())
        done, _ = await asyncio.wait({self._proof}, timeout=_DATABASE_SECONDS)
        return self._proof.result() if done else _NO_ANSWER

    def _is_old(self, objection: str) -> bool:
        """Whether the last proof has expired. A failure expires at once: the database may be back."""
        return bool(objection) or self._clock.monotonic() - self._proved_at >= _PROOF_SECONDS

    async def _attempt(self) -> str:
        try:
            await self._prove()
        except AllocatorError as error:
            return f"{_NO_ANSWER}: {error}"
        except Exception as error:  # noqa: BLE001 - a task that failed would fail every later call
            self._log.error("readiness cannot be proved", exc_info=error)
            return f"{_NO_ANSWER}: {type(error).__name__}; see the allocator's log"
        self._proved_at = self._clock.monotonic()
        return ""


class Operations:
    """The state that these paths report on."""

    def __init__(
        self, allocator: AdministeredAllocator, metrics: AllocatorMetrics, readiness: ServiceReadiness
    ) -> None:
        self.readiness = readiness
        self._allocator = allocator
        self._metrics = metrics

    async def word(self) -> str:
        """What to report of a service that is ready; a store that recovers is, because reports are requests."""
        registry = await self._registry()
        if registry is None or not registry.recovering:
            return "ok"
        awaited = ", ".join(registry.awaited) or "the first cluster"
        return f"ok, but nothing is granted: the store went back ({registry.recovering}), and waits for {awaited}"

    async def _registry(self) -> ClusterRegistry | None:
        """The clusters, where the allocator behind the service knows them."""
        try:
            async with asyncio.timeout(_DATABASE_SECONDS):
                return await self._allocator.list_clusters()
        except (AllocatorError, TimeoutError):
            return None

    async def metrics(self) -> bytes:
        """The metrics, with the subnets as they stand now."""
        try:
            async with asyncio.timeout(_DATABASE_SECONDS):
                self._metrics.show_subnets(await self._allocator.list_subnets())
        except (AllocatorError, TimeoutError):
            self._metrics.show_subnets(None)
        self._metrics.show_recovery(await self._registry())
        return self._metrics.render()


Operated: TypeAlias = NamedDependency[SkipValidation[Operations]]


@get("/healthz", media_type=_TEXT)
async def get_health() -> str:
    """Whether the process is alive."""
    return "ok"


@get("/readyz", media_type=_TEXT, responses=_NOT_READY)
async def get_readiness(operations: Operated) -> Response[str]:
    """Whether requests should be sent here: the database takes writes, and the service is not about to stop."""
    objection = await operations.readiness.objection()
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return Response(objection or await operations.word(), status_code=status, media_type=_TEXT)


@get("/metrics", media_type=_PROMETHEUS)
async def get_metrics(operations: Operated) -> Response[bytes]:
    """Metrics for Prometheus."""
    return Response(await operations.metrics(), media_type=_PROMETHEUS)


OPERATION_ROUTES = (get_health, get_readiness, get_metrics)
