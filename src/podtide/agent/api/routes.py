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
from aiohttp import web
from aiohttp.typedefs import Handler
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
from podtide.runtime.http_port import read_body
from podtide.runtime.logging import Logger

T = TypeVar("T")

RETURN_CODE_HEADER = "cns_return_code"


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
    """The handlers of all paths. Calls that wait are refused when one of the applications shuts down."""

    def __init__(self, api: AgentApi) -> None:
        self._api = api
        self._stopping = asyncio.Event()

    def application(self, *, for_plugin: bool) -> web.Application:
        """The application for the plugin's socket, which has `/cni`, or for TCP, where only root may call most paths."""
        application = web.Application(client_max_size=MOST_REQUEST_BYTES, middlewares=[_refuse_undecodable])
        if for_plugin:
            application.router.add_post("/cni", self._cni)
            application.router.add_post("/addresses/release", self._release_by_hand)
        else:
            application.middlewares.append(only_for_root(self._api.log))
        application.add_routes(
            [
                web.post("/network/requestipconfigs", self._request(several)),
                web.post("/network/requestipconfig", self._request(one)),
                web.post("/network/releaseipconfigs", self._release),
                web.post("/network/releaseipconfig", self._release),
                web.post("/debug/ipaddresses", self._show),
                web.get("/healthz", self._health),
                web.get("/readyz", self._readiness),
                web.get("/metrics", self._metrics),
            ]
        )
        application.on_shutdown.append(self._stop)
        return application

    async def _stop(self, _application: web.Application) -> None:
        self._stopping.set()

    # The plugin's path

    async def _cni(self, request: web.Request) -> web.StreamResponse:
        arrived = self._api.clock.monotonic()
        try:
            body = await _body(request)
        except InvalidInput as error:
            return web.Response(body=encode_answer(cni_calls.refusal(error, b"")))
        answers: list[Answer] = []
        pending = self._api.calls.receive(body, arrived=arrived, respond=answers.append)
        if pending is None:
            return web.Response(body=encode_answer(answers[0]))
        try:
            async with _under_way(pending.answer()) as answering:
                if await _done_in_a_moment(answering):
                    return web.Response(body=encode_answer(answering.result()))
                response = await self._acknowledge(request)
                answer: Answer = await self._unless_stopping(answering) or pending.refusal(STOPPING)
        finally:
            pending.abandon()
        await response.write(encode_answer(answer))
        return response

    async def _acknowledge(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={WAIT_HEADER: longest_wait(self._api.add_wait_seconds)})
        await response.prepare(request)
        return response

    # The paths of Azure CNS

    def _request(self, shape: Shape) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            arrived = self._api.clock.monotonic()
            body = await _body(request)
            async with _under_way(self._api.cns.request(body, shape, arrived=arrived)) as answering:
                if await _done_in_a_moment(answering):
                    return _json(answering.result())
                answer: CnsAnswer = await self._unless_stopping(answering) or cns_api.refusal(STOPPING, shape)
            return _json(answer)

        return handle

    async def _release(self, request: web.Request) -> web.StreamResponse:
        arrived = self._api.clock.monotonic()
        return _json(self._api.cns.release(await _body(request), arrived=arrived))

    async def _show(self, request: web.Request) -> web.StreamResponse:
        return _json(self._api.cns.show(await _body(request)))

    # For people

    async def _release_by_hand(self, request: web.Request) -> web.StreamResponse:
        releases = self._api.manual_releases
        if releases is None:
            return web.Response(status=HTTPStatus.NOT_FOUND, text="this node has no pool\n")
        try:
            asked = msgspec.json.decode(await _body(request), type=ManualRelease)
            answer = await releases.release(asked)
        except NotInPool as error:
            return web.Response(status=HTTPStatus.NOT_FOUND, text=f"{error}\n")
        except (InvalidInput, msgspec.DecodeError) as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
        except (RetryError, StopError) as error:  # such as a disk that is full: nothing has changed
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=f"{error}\n")
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    # Health and metrics

    async def _health(self, _request: web.Request) -> web.StreamResponse:
        return _verdict("" if self._api.is_running() else "the agent's program has ended")

    async def _readiness(self, _request: web.Request) -> web.StreamResponse:
        try:
            self._api.addresses.require_ready()
        except NotReady as error:
            return _verdict(str(error))
        return _verdict("")

    async def _metrics(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._api.metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

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


async def _body(request: web.Request) -> bytes:
    """The body, if the caller is still connected.

    An agent that was stopped for a while finds requests of plugins that have given up: they must not get an address.
    """
    try:
        body = await read_body(request)
    except web.HTTPRequestEntityTooLarge:
        raise Undecodable(f"the request has more than {MOST_REQUEST_BYTES >> 20} MiB: send less") from None
    await asyncio.sleep(0)  # what the loop has not read yet may be the connection's end
    if request.transport is None or request.transport.is_closing():
        raise web.HTTPRequestTimeout(text="the caller has disconnected")
    return body


@web.middleware
async def _refuse_undecodable(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Undecodable as error:
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")


def _json(answer: CnsAnswer) -> web.Response:
    return web.Response(
        body=answer.document,
        content_type="application/json",
        charset="utf-8",
        headers={RETURN_CODE_HEADER: answer.code.title},
    )


def _verdict(objection: str) -> web.Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if objection else HTTPStatus.OK
    return web.Response(status=status, text=objection or "ok")
