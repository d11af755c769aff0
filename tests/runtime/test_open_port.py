"""A port with limits, on virtual time: what it gives up, what it leaves alone, and who gets the last place."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from msgspec import Struct

from podtide.runtime import http_port, http_server
from podtide.runtime.http_server import HttpRequest, HttpResponse, routed, text_response
from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, listen
from podtide.runtime.port_limits import PortLimits

LIMITS = PortLimits(connections=4, request_seconds=10.0, idle_seconds=75.0)
REQUEST = b"GET /quick HTTP/1.1\r\nHost: here\r\n\r\n"
HALF_A_BODY = b"POST /measure HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf"
A_SWEEP_SECONDS = 1.5


class Client(Struct, frozen=True):
    """One connection to the port."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes = REQUEST) -> str:
        """The status line of the answer, once all of it has come."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await self.reader.readexactly(int(length.partition(b":")[2]))
        return head.partition(b"\r\n")[0].decode()

    async def closed_after(self) -> float:
        """After how many seconds the port closes it."""
        begin = asyncio.get_running_loop().time()
        with suppress(ConnectionError):
            assert await self.reader.read() == b""
        return asyncio.get_running_loop().time() - begin


Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def by_aiohttp(limits: PortLimits) -> AsyncIterator[ListenAddress]:
    async def slow(request: web.Request) -> web.Response:
        await http_port.read_body(request)
        await asyncio.sleep(600)
        return web.Response(text="at last")

    async def quick(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def measure(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await http_port.read_body(request))))

    application = web.Application()
    application.add_routes(
        [
            web.get("/quick", quick),
            web.route("*", "/slow", slow),
            web.post("/measure", measure),
        ]
    )
    async with http_port.serving_http(application, ListenAddress("127.0.0.1", 0), limits=limits) as address:
        yield address


@asynccontextmanager
async def by_httptools(limits: PortLimits) -> AsyncIterator[ListenAddress]:
    async def slow(request: HttpRequest) -> HttpResponse:
        await request.read()
        await asyncio.sleep(600)
        return text_response("at last")

    async def quick(_request: HttpRequest) -> HttpResponse:
        return text_response("ok")

    async def measure(request: HttpRequest) -> HttpResponse:
        return text_response(str(len(await request.read())))

    handler = routed(
        {
            ("GET", "/quick"): quick,
            ("GET", "/slow"): slow,
            ("POST", "/slow"): slow,
            ("POST", "/measure"): measure,
        }
    )
    async with http_server.serving_http(
        handler, ListenAddress("127.0.0.1", 0), limits=limits, most_body_bytes=1 << 20
    ) as address:
        yield address


SERVERS = [by_aiohttp, by_httptools]
serving = SERVERS[0]


@pytest.fixture(autouse=True, params=SERVERS)
def _each_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "serving", request.param)


@asynccontextmanager
async def a_port(limits: PortLimits = LIMITS) -> AsyncIterator[Connect]:
    """A port whose server answers `/quick` at once, `/slow` after ten minutes, and `/measure` with how long the body is."""
    opened: list[asyncio.StreamWriter] = []
    async with serving(limits) as address:

        async def connect() -> Client:
            reader, writer = await asyncio.open_connection(address.host, address.port)
            opened.append(writer)
            return Client(reader, writer)

        try:
            yield connect
        finally:
            for writer in opened:
                writer.close()


async def test_who_says_nothing_is_given_up() -> None:
    async with a_port() as connect:
        assert await (await connect()).closed_after() <= LIMITS.request_seconds + A_SWEEP_SECONDS


async def test_a_request_that_trickles_is_given_up() -> None:
    async with a_port() as connect:
        client = await connect()

        async def trickle() -> None:
            client.writer.write(b"GET /quick HTTP/1.1\r\n")
            while True:
                client.writer.write(b"X-More: and more\r\n")
                await asyncio.sleep(0.5)

        trickling = asyncio.create_task(trickle())
        assert await client.closed_after() <= LIMITS.request_seconds + A_SWEEP_SECONDS
        trickling.cancel()


async def test_a_connection_is_kept_between_requests_and_not_for_ever() -> None:
    async with a_port() as connect:
        client = await connect()
        assert await client.ask() == "HTTP/1.1 200 OK"
        await asyncio.sleep(LIMITS.idle_seconds - 2)
        assert await client.ask() == "HTTP/1.1 200 OK"
        assert (
            LIMITS.idle_seconds - A_SWEEP_SECONDS
            < await client.closed_after()
            <= LIMITS.idle_seconds + A_SWEEP_SECONDS
        )


async def test_half_a_request_behind_a_whole_one_is_given_up_sooner_than_silence() -> None:
    async with a_port() as connect:
        client = await connect()
        await client.ask()
        client.writer.write(b"GET /quick HT")
        assert await client.closed_after() <= LIMITS.request_seconds + A_SWEEP_SECONDS


async def test_a_request_under_way_is_left_alone() -> None:
    async with a_port() as connect:
        assert await (await connect()).ask(REQUEST.replace(b"quick", b"slow")) == "HTTP/1.1 200 OK"


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with a_port() as connect:
        assert (await (await connect()).ask(HALF_A_BODY)).startswith("HTTP/1.1 408")


async def test_silent_connections_displace_themselves_and_a_client_that_speaks_is_answered() -> None:
    async with a_port() as connect:
        silent = [await connect() for _ in range(20)]
        speaking = await connect()
        assert await speaking.ask() == "HTTP/1.1 200 OK"
        assert [await client.closed_after() for client in silent[:16]] == [0] * 16
        assert await speaking.ask() == "HTTP/1.1 200 OK"


async def test_halves_of_bodies_displace_themselves_and_a_client_that_speaks_is_answered() -> None:
    async with a_port() as connect:
        halves = [await connect() for _ in range(20)]
        for client in halves:
            client.writer.write(HALF_A_BODY)
            await asyncio.sleep(0.01)
        speaking = await connect()
        assert await speaking.ask() == "HTTP/1.1 200 OK"
        assert [await client.closed_after() for client in halves[:16]] == [0] * 16


async def test_a_request_whose_body_has_come_is_not_displaced() -> None:
    async with a_port() as connect:
        working = await connect()
        answer = asyncio.create_task(
            working.ask(b"POST /slow HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody")
        )
        await asyncio.sleep(0.01)
        for _ in range(20):
            (await connect()).writer.write(HALF_A_BODY)
            await asyncio.sleep(0.01)
        assert await answer == "HTTP/1.1 200 OK"


async def test_requests_under_way_are_not_displaced(caplog: pytest.LogCaptureFixture) -> None:
    async with a_port() as connect:
        slow = REQUEST.replace(b"quick", b"slow")
        under_way = [asyncio.create_task((await connect()).ask(slow)) for _ in range(4)]
        await asyncio.sleep(1)
        assert await (await connect()).closed_after() == 0
        assert await asyncio.gather(*under_way) == ["HTTP/1.1 200 OK"] * 4
    assert "the limit is reached" in caplog.text


async def test_a_flood_costs_a_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async with a_port() as connect:
        for _ in range(200):
            await connect()
        await asyncio.sleep(11)
        for _ in range(200):
            await connect()
    assert len(caplog.messages) == 2
    assert "195 times" in caplog.messages[1]


MALFORMED = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"NOPE\0 / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n: nameless\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /measure HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50_000 + b"\r\n",
)


@pytest.mark.parametrize("before", [b"", REQUEST], ids=["first", "second"])
@pytest.mark.parametrize("request_bytes", MALFORMED, ids=range(len(MALFORMED)))
async def test_malformed_http_costs_a_line_and_no_traceback(
    before: bytes, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_port() as connect:
        client = await connect()
        if before:
            await client.ask(before)
        client.writer.write(request_bytes)
        with suppress(ConnectionResetError):  # whoever sends too much is not listened to until the end
            answer = await client.reader.read()
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert len(caplog.records) <= 1
    for record in caplog.records:
        assert (record.levelno, record.exc_info) == (logging.WARNING, None)


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"nonsense"])
@pytest.mark.parametrize(
    ("line", "status"), [(b"POST /measure", "415"), (b"GET /quick", "200"), (b"POST /nowhere", "404")]
)
async def test_a_body_that_is_encoded_is_refused_where_it_is_read_and_leaves_no_traceback(
    line: bytes, status: str, encoding: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    head = b" HTTP/1.1\r\nHost: here\r\nContent-Length: 8\r\nContent-Encoding: "
    async with a_port() as connect:
        client = await connect()
        assert (await client.ask(line + head + encoding + b"\r\n\r\nno gzip!")).split()[1] == status
        assert await client.ask() == "HTTP/1.1 200 OK"
    assert not caplog.records


async def test_what_the_server_left_open_is_dropped_with_the_port() -> None:
    limits = PortLimits()
    listener = listen(ListenAddress("127.0.0.1", 0), limits)
    lost = asyncio.Event()

    class Deaf(asyncio.Protocol):
        """A server that ends none of its connections."""

        def connection_lost(self, _error: Exception | None) -> None:
            lost.set()

    port = OpenPort(listener, Deaf, limits=limits)
    port.open()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(REQUEST)
    await writer.drain()
    await asyncio.sleep(0.1)
    await port.close()
    assert not lost.is_set(), "closing is the server's"
    port.drop_connections()
    await lost.wait()
    with suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
