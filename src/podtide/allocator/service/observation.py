"""Every request, whatever its outcome, gets an id, a line in the log and a count in the metrics.

This wraps the whole application, so that a request to an unknown path is counted too.
"""

import re
from random import Random

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from podtide.allocator.service.callers import CALLER
from podtide.allocator.service.metrics import AllocatorMetrics
from podtide.allocator.service.refusals import OUTCOME, REQUEST_ID
from podtide.runtime.clock import Clock
from podtide.runtime.ids import new_uuid
from podtide.runtime.logging import Logger

_ID_HEADER = b"x-request-id"
_USABLE_ID = re.compile(rb"[\w.\-]{1,64}", re.ASCII)
_READS = ("GET", "HEAD", "OPTIONS")
_NOWHERE = "none"
_UNFORESEEN = 500


class RequestLog:
    """An ASGI middleware that logs and counts every request."""

    def __init__(
        self, app: ASGIApp, metrics: AllocatorMetrics, log: Logger, clock: Clock, randomness: Random
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._randomness = randomness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        begun = self._clock.monotonic()
        request_id = self._request_id(scope)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (_ID_HEADER, request_id)]
            await send(message)

        scope.setdefault("state", {})[REQUEST_ID] = request_id.decode()
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            self._tell(scope, status, request_id.decode(), self._clock.monotonic() - begun)

    def _request_id(self, scope: HTTPScope) -> bytes:
        """The caller's request id, so that both logs can be compared, else a new one."""
        given = next((value for name, value in scope["headers"] if name == _ID_HEADER), b"")
        return given if _USABLE_ID.fullmatch(given) else new_uuid(self._randomness).encode()

    def _tell(self, scope: HTTPScope, status: int, request_id: str, seconds: float) -> None:
        state = scope["state"]
        outcome = state.get(OUTCOME, "ok")
        # The pattern, not the path: a metric per container would grow for ever. So would one per invented method.
        route = scope.get("path_template") or _NOWHERE
        method = scope["method"] if route != _NOWHERE else _NOWHERE
        self._metrics.count(method, route, outcome, seconds)
        tell = self._log.debug if scope["method"] in _READS and status < _UNFORESEEN else self._log.info
        tell(
            "answered",
            method=scope["method"],
            path=scope["path"],
            status=status,
            outcome=outcome,
            milliseconds=round(seconds * 1000, 3),
            request_id=request_id,
            caller=state.get(CALLER, "anybody"),
        )
