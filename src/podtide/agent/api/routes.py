"""The agent's API as HTTP: paths, bodies and headers, and requests that have to wait.

The plugin's own requests are answered in `plugin_connections`; `/cni` is here for those that come in pieces, or from
another HTTP client. An ADD may wait for seconds. The head of its response is the acknowledgement (plugin/PROTOCOL.md), by
which the plugin tells an agent that waits from one that hangs. When a caller disconnects its wait ends, and an agent that
stops refuses the calls that wait: no address is assigned to a caller that is gone.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST

from podtide.agent.api import cni_calls, cns_api
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.cns_api import CnsAnswer, CnsApi, Shape, one, several
from podtide.agent.api.cns_callers import only_for_root
from podtide.agent.api.metrics import AgentMetrics
from podtide.agent.api.plugin_connections import STOPPING
from podtide.agent.api.plugin_protocol import (
    ACKNOWLEDGE_AFTER_SECONDS,
    MOST_REQUEST_BYTES,
    WAIT_HEADER,
    Answer,
    encode_answer,
    longest_wait,
)
from podtide.agent.pool.manual_release import ManualRelease, ManualReleases, NotInPool
from podtide.agent.port import Addresses, NotReady
from podtide.cni.errors import Undecodable
from podtide.core.errors import InvalidInput, RetryError, StopError
from podtide.runtime.clock import Clock
from podtide.runtime.http_server import (
    BodyTooLong,
    Handler,
    HttpRefusal,
    HttpRequest,
    HttpResponse,
    routed,
    text_response,
)
from podtide.runtime.logging import Logger

T = TypeVar("T")

RETURN_CODE_HEADER = "cns_return_code"
_JSON = "application/json; charset=utf-8"


class AgentApi(Struct, frozen=True, kw_only=True):
    """The parts of the API that answer requests."""

    calls: CniCalls
    cns: CnsApi
    metrics: AgentMetrics
    addresses: Addresses
    manual_releases: ManualReleases | None = None
    """None on a node without a pool."""
    is_running: Callable[[], bool]
    """Whether the agent's program runs: what /healthz says."""
    clock: Clock
    log: Logger
    add_wait_seconds: float


class Routes:
    """The handlers of all paths. Calls that wait are refused from `stop` on."""

    def __init__(self, api: AgentApi) -> None:
        self._api = api
        self._stopping = asyncio.Event()

    def handler(self, *, for_plugin: bool) -> Handler:
        """What answers on the plugin's socket, which has `/cni`, or on TCP, where only root may call most paths."""
        handler = _refusing_undecodable(routed(self.table(for_plugin=for_plugin)))
        return handler if for_plugin else only_for_root(handler, self._api.log)

    def table(self, *, for_plugin: bool) -> dict[tuple[str, str], Handler]:
        """The handlers by method and path."""
        plugins: dict[tuple[str, str], Handler] = {
            ("POST", "/cni"): self._cni,
            ("POST", "/addresses/release"): self._release_by_hand,
        }
        return (plugins if for_plugin else {}) | {
            ("POST", "/network/requestipconfigs"): self._request(several),
            ("POST", "/network/requestipconfig"): self._request(one),
            ("POST", "/network/releaseipconfigs"): self._release,
            ("POST", "/network/releaseipconfig"): self._release,
            ("POST", "/debug/ipaddresses"): self._show,
            ("GET", "/healthz"): self._health,
            ("GET", "/readyz"): self._readiness,
            ("GET", "/metrics"): self._metrics,
        }

    def stop(self) -> None:
        """Refuse the calls that wait."""
        self._stopping.set()

    # The plugin's path

    async def _cni(self, request: HttpRequest) -> HttpResponse:
        arrived = self._api.clock.monotonic()
        try:
            body = await _body(request)
        except InvalidInput as error:
            return HttpResponse(body=encode_answer(cni_calls.refusal(error, b"")))
        answers: list[Answer] = []
        pending = self._api.calls.receive(body, arrived=arrived, respond=answers.append)
        if pending is None:
            return HttpResponse(body=encode_answer(answers[0]))
        try:
            async with _under_way(pending.answer()) as answering:
                if await _done_in_a_moment(answering):
                    return HttpResponse(body=encode_answer(answering.result()))
                request.begin({WAIT_HEADER: longest_wait(self._api.add_wait_seconds)})
                answer: Answer = await self._unless_stopping(answering) or pending.refusal(STOPPING)
        finally:
            pending.abandon()
        return HttpResponse(body=encode_answer(answer))

    # The paths of Azure CNS

    def _request(self, shape: Shape) -> Handler:
        async def handle(request: HttpRequest) -> HttpResponse:
            arrived = self._api.clock.monotonic()
            body = await _body(request)
            async with _under_way(self._api.cns.request(body, shape, arrived=arrived)) as answering:
                if await _done_in_a_moment(answering):
                    return _json(answering.result())
                answer: CnsAnswer = await self._unless_stopping(answering) or cns_api.refusal(STOPPING, shape)
            return _json(answer)

        return handle

    async def _release(self, request: HttpRequest) -> HttpResponse:
        arrived = self._api.clock.monotonic()
        return _json(self._api.cns.release(await _body(request), arrived=arrived))

    async def _show(self, request: HttpRequest) -> HttpResponse:
        return _json(self._api.cns.show(await _body(request)))

    # For people

    async def _release_by_hand(self, request: HttpRequest) -> HttpResponse:
        releases = self._api.manual_releases
        if releases is None:
            return text_response("this node has no pool\n", HTTPStatus.NOT_FOUND)
        try:
            asked = msgspec.json.decode(await _body(request), type=ManualRelease)
            answer = await releases.release(asked)
        except NotInPool as error:
            return text_response(f"{error}\n", HTTPStatus.NOT_FOUND)
        except (InvalidInput, msgspec.DecodeError) as error:
            return text_response(f"{error}\n", HTTPStatus.BAD_REQUEST)
        except (RetryError, StopError) as error:  # such as a disk that is full: nothing has changed
            return text_response(f"{error}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return HttpResponse(body=msgspec.json.encode(answer), content_type=_JSON)

    # Health and metrics

    async def _health(self, _request: HttpRequest) -> HttpResponse:
        return _verdict("" if self._api.is_running() else "the agent's program has ended")

    async def _readiness(self, _request: HttpRequest) -> HttpResponse:
        try:
            self._api.addresses.require_ready()
        except NotReady as error:
            return _verdict(str(error))
        return _verdict("")

    async def _metrics(self, _request: HttpRequest) -> HttpResponse:
        return HttpResponse(body=self._api.metrics.render(), content_type=CONTENT_TYPE_LATEST)

    async def _unless_stopping(self, work: "asyncio.Task[T]") -> T | None:
        """The result of the work, or None if the agent stops before it is done."""
        async with _under_way(self._stopping.wait()) as stopping:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None


@asynccontextmanager
async def _under_way(work: Coroutine[Any, Any, T]) -> AsyncIterator["asyncio.Task[T]"]:
    """The work as a task that is cancelled when this context ends."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()


async def _done_in_a_moment(work: "asyncio.Task[Any]") -> bool:
    await asyncio.wait({work}, timeout=ACKNOWLEDGE_AFTER_SECONDS)
    return work.done()


async def _body(request: HttpRequest) -> bytes:
    """The body, if the caller is still connected.

    An agent that was stopped for a while finds requests of plugins that have given up: they must not get an address.
    """
    try:
        body = await request.read()
    except BodyTooLong:
        raise Undecodable(f"the request has more than {MOST_REQUEST_BYTES >> 20} MiB: send less") from None
    await asyncio.sleep(0)  # what the loop has not read yet may be the connection's end
    if request.socket is None:
        raise HttpRefusal(HTTPStatus.REQUEST_TIMEOUT, "the caller has disconnected")
    return body


def _refusing_undecodable(handler: Handler) -> Handler:
    async def handle(request: HttpRequest) -> HttpResponse:
        try:
            return await handler(request)
        except Undecodable as error:
            return text_response(f"{error}\n", HTTPStatus.BAD_REQUEST)

    return handle


def _json(answer: CnsAnswer) -> HttpResponse:
    return HttpResponse(
        body=answer.document, content_type=_JSON, headers={RETURN_CODE_HEADER: answer.code.title}
    )


def _verdict(objection: str) -> HttpResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return text_response(objection or "ok", status)
