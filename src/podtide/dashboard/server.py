"""The page over HTTP: routes, headers, the token and limits.

aiohttp and not Litestar, which the allocator's service is made with: a controller has aiohttp loaded anyway, and all
that the page needs is a dozen GETs and a stream.

Who may read: without a token every process that reaches the port, so that it is opened on a loopback address only, and a
request must name a loopback host: or a web site could have a visitor's browser read it under a name of its own (DNS
rebinding). With a token, the page and its files are public, which hold nothing, and all else needs the token.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, NoReturn

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.cluster.port import Cluster
from podtide.dashboard.address_answers import AddressAnswers
from podtide.dashboard.answers import PageNode, PageRefusal, bad_question
from podtide.dashboard.compression import GZIP, StreamCompression, compress, takes_gzip
from podtide.dashboard.feed import PageFeed
from podtide.dashboard.history_answers import HistoryAnswers
from podtide.dashboard.network_answers import NetworkAnswers
from podtide.dashboard.page_files import PageFile, read_page_files
from podtide.dashboard.page_state import EncodedEvent
from podtide.dashboard.pod_finder import PodFinder
from podtide.dashboard.waiting_answers import waiting_pods
from podtide.runtime.http_port import serving_http
from podtide.runtime.listening import ListenAddress, host_of, is_loopback
from podtide.runtime.port_limits import PortLimits
from podtide.runtime.runtime import Runtime

MOST_STREAMS = 64
_LIMITS = PortLimits(connections=256)
_ALIVE_SECONDS = 15.0
_FIRST_READ_SECONDS = 5.0
"""How long a client waits for a cluster that is being read, before it is sent what there is."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_API = "/api/"
_BEARER = "Bearer "
_MOST_DIGITS = 15
_ENCODER = msgspec.json.Encoder()


class PageSources(Struct, frozen=True, kw_only=True):
    """What the page answers from."""

    feed: PageFeed
    cluster: Cluster
    allocator: Allocator | None
    networks_namespace: str
    runtime: Runtime


class PageServer:
    """The routes of one page."""

    def __init__(self, sources: PageSources, *, token: str = "") -> None:
        self._feed = sources.feed
        self._token = token.encode()
        self._log = sources.runtime.log
        self._files = read_page_files()
        self._epoch = secrets.token_hex(6)
        """A client that knew another process is sent everything."""
        self._streams = 0
        self._ending = asyncio.Event()
        clock, state = sources.runtime.clock, sources.feed.state
        pods = PodFinder(sources.cluster, clock)
        self._pods = pods
        self._addresses = AddressAnswers(state, pods, clock)
        self._history = HistoryAnswers(state, sources.allocator, clock)
        self._networks = NetworkAnswers(state, sources.cluster, sources.networks_namespace, clock)

    def application(self) -> web.Application:
        """The routes, for an HTTP server."""
        application = web.Application(middlewares=[self._answer_all])
        application.add_routes(
            [
                web.get("/", self._file),
                web.get("/static/{path:.+}", self._file),
                web.get("/api/stream", self._stream),
                web.get("/api/subnets/{name}/map", self._map),
                web.get("/api/subnets/{name}/utilization", self._utilization),
                web.get("/api/subnets/{name}/usage", self._usage),
                web.get("/api/subnets/{name}/forecast", self._forecast),
                web.get("/api/addresses/{address}", self._address),
                web.get("/api/nodes/{name}", self._node),
                web.get("/api/waiting", self._waiting),
                web.get("/api/networks", self._all_networks),
                web.get("/api/networks/{name}", self._network),
            ]
        )

        async def end(_application: web.Application) -> None:
            self._ending.set()

        application.on_shutdown.append(end)
        return application

    async def keep_pods_fresh(self) -> NoReturn:
        """While pages are open that show which addresses pods have, look that up now and then."""
        while True:
            await asyncio.sleep(self._addresses.pods_due_seconds())
            if self._streams and await self._addresses.renew_pods():
                self._feed.wake()

    # For every request

    @web.middleware
    async def _answer_all(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            response = await handler(request)
        except PageRefusal as refusal:
            response = _refused(refusal.status, refusal.sentence)
        except web.HTTPException as refusal:
            response = _refused(HTTPStatus(refusal.status), _sentence(refusal, request))
        except Exception as error:  # noqa: BLE001 - a mistake in one answer must not end the others
            self._log.exception("the page could not answer", path=request.path, error=str(error))
            response = _refused(
                HTTPStatus.INTERNAL_SERVER_ERROR, "the server made a mistake: its log has the traceback"
            )
        if not response.prepared:
            _add_headers(response, request)
            if isinstance(response, web.Response) and request.path.startswith(_API):
                compress(request, response)
        return response

    def _check(self, request: web.Request) -> None:
        if not self._token:
            if not is_loopback(host_of(request.headers.get(hdrs.HOST, ""))):
                raise PageRefusal(
                    HTTPStatus.FORBIDDEN,
                    "this page is served without a token, to this machine only: open it by a loopback address, such as 127.0.0.1",
                )
        elif request.path.startswith(_API):
            given = request.headers.get(hdrs.AUTHORIZATION, "")
            token = given.removeprefix(_BEARER) if given.startswith(_BEARER) else ""
            if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
                words = "the token is wrong" if given else "a token is needed"
                raise PageRefusal(
                    HTTPStatus.UNAUTHORIZED, f"{words}: send the one that this page was started with"
                )

    # Files

    async def _file(self, request: web.Request) -> web.Response:
        path = request.match_info.get("path", "")
        found = self._files.get(path)
        if found is None:
            raise PageRefusal(HTTPStatus.NOT_FOUND, f"there is no file {path[:80]!r}")
        return _file_response(found, request)

    # The stream

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if self._streams >= MOST_STREAMS:
            raise PageRefusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{MOST_STREAMS} pages are open already: close one, or look again later",
            )
        self._streams += 1
        try:
            return await self._send(request)
        finally:
            self._streams -= 1

    async def _send(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream"})
        _add_headers(response, request)
        packed = StreamCompression(request, response)
        await response.prepare(request)
        seen = self._seen(request.headers.get("Last-Event-ID", ""))
        state = self._feed.state
        if seen is None:
            await self._feed.until_read(_FIRST_READ_SECONDS)
        try:
            while not self._ending.is_set():
                event = state.event_since(seen)
                if event is not None:
                    seen = event.sequence
                    await response.write(packed.whole(_lines(self._epoch, event)))
                    continue
                if not await self._changed():
                    await response.write(packed.whole(b": alive\n\n"))
        except ConnectionError:
            pass  # the page was closed
        return response

    async def _changed(self) -> bool:
        """Wait for a change, or until it is time to show that the connection is alive."""
        sequence = self._feed.state.sequence
        waiting = {
            asyncio.ensure_future(self._feed.next_change(_ALIVE_SECONDS)),
            asyncio.ensure_future(self._ending.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return self._feed.state.sequence != sequence

    def _seen(self, event_id: str) -> int | None:
        epoch, _, sequence = event_id.partition(".")
        if epoch != self._epoch or not sequence.isdecimal() or len(sequence) > _MOST_DIGITS:
            return None
        return int(sequence)

    # Questions

    async def _map(self, request: web.Request) -> web.Response:
        node = request.query.get("node")
        first, count = _number(request, "from", 0), _number(request, "count", 256)
        return _answer(await self._addresses.map(request.match_info["name"], first, count, node))

    async def _utilization(self, request: web.Request) -> web.Response:
        first, count = _number(request, "from", 0), _number(request, "count", 4_096)
        return _answer(self._addresses.utilization(request.match_info["name"], first, count))

    async def _usage(self, request: web.Request) -> web.Response:
        since, until, step = (
            request.query.get(name, default)
            for name, default in (("since", ""), ("until", ""), ("step", "auto"))
        )
        return _answer(await self._history.usage(request.match_info["name"], since, until, step))

    async def _forecast(self, request: web.Request) -> web.Response:
        return _answer(await self._history.forecast(request.match_info["name"]))

    async def _address(self, request: web.Request) -> web.Response:
        return _answer(await self._addresses.address(request.match_info["address"]))

    async def _node(self, request: web.Request) -> web.Response:
        return _answer(await self._addresses.node(request.match_info["name"]))

    async def _waiting(self, _request: web.Request) -> web.Response:
        return _answer(await waiting_pods(self._feed.state, self._pods))

    async def _all_networks(self, _request: web.Request) -> web.Response:
        return _answer(await self._networks.all())

    async def _network(self, request: web.Request) -> web.Response:
        return _answer(await self._networks.one(request.match_info["name"]))


@asynccontextmanager
async def serving_page(
    sources: PageSources, address: ListenAddress, *, token: str = ""
) -> AsyncIterator[ListenAddress]:
    """Serve the page until the context ends; yields the address. The feed is for the caller to run."""
    server = PageServer(sources, token=token)
    async with serving_http(server.application(), address, limits=_LIMITS) as found:
        looking = asyncio.create_task(server.keep_pods_fresh())
        try:
            yield found
        finally:
            looking.cancel()
            await asyncio.wait({looking})


def _answer(answer: Any) -> web.Response:
    if isinstance(answer, PageNode):
        answer = {**msgspec.to_builtins(answer.record), **msgspec.to_builtins(answer.details)}
    return web.Response(body=_ENCODER.encode(answer), content_type="application/json")


def _refused(status: HTTPStatus, sentence: str) -> web.Response:
    response = web.Response(
        status=status, body=_ENCODER.encode({"error": sentence}), content_type="application/json"
    )
    if status is HTTPStatus.UNAUTHORIZED:
        response.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return response


def _sentence(refusal: web.HTTPException, request: web.Request) -> str:
    if refusal.status == HTTPStatus.NOT_FOUND:
        return f"there is nothing at {request.path[:120]!r}"
    if refusal.status == HTTPStatus.METHOD_NOT_ALLOWED:
        return "the page only reads: use GET"
    return refusal.reason


def _file_response(file: PageFile, request: web.Request) -> web.Response:
    headers = {hdrs.ETAG: file.etag, hdrs.CACHE_CONTROL: "no-cache"}
    if request.headers.get(hdrs.IF_NONE_MATCH) == file.etag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    headers |= {hdrs.CONTENT_TYPE: file.content_type, hdrs.VARY: hdrs.ACCEPT_ENCODING}
    if file.gzipped is not None and takes_gzip(request):
        return web.Response(body=file.gzipped, headers={**headers, hdrs.CONTENT_ENCODING: GZIP})
    return web.Response(body=file.body, headers=headers)


def _add_headers(response: web.StreamResponse, request: web.Request) -> None:
    headers = response.headers
    headers["Content-Security-Policy"] = _POLICY
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if request.path.startswith(_API) or hdrs.CACHE_CONTROL not in headers:
        headers[hdrs.CACHE_CONTROL] = "no-store"


def _lines(epoch: str, event: EncodedEvent) -> bytes:
    head = f"id: {epoch}.{event.sequence}\nevent: {event.kind}\ndata: "
    return head.encode() + event.data + b"\n\n"


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise bad_question(f"{name} {text[:40]!r} is not a number: give 0 or more")
    return int(text)
