"""HTTP on a port without a framework: what is answered, in which order, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podtide.runtime.http_server import HttpRequest, HttpResponse, routed, serving_http, text_response
from podtide.runtime.listening import ListenAddress
from podtide.runtime.port_limits import PortLimits

MOST_BODY_BYTES = 1000


@asynccontextmanager
async def served() -> AsyncIterator[ListenAddress]:
    """`POST /echo` answers with the body, after a while where the body says so; `/fail` with a fault of the server."""

    async def echo(request: HttpRequest) -> HttpResponse:
        body = await request.read()
        if body == b"later":
            await asyncio.sleep(1)
        return HttpResponse(body=body)

    async def acknowledged(request: HttpRequest) -> HttpResponse:
        await request.read()
        request.begin({"Wait": "5"})
        await asyncio.sleep(1)
        return text_response("in the end")

    async def fail(_request: HttpRequest) -> HttpResponse:
        raise RuntimeError("a fault")

    async def hello(_request: HttpRequest) -> HttpResponse:
        return text_response("hello")

    handler = routed(
        {
            ("POST", "/echo"): echo,
            ("POST", "/acknowledged"): acknowledged,
            ("GET", "/fail"): fail,
            ("GET", "/hello there"): hello,
        }
    )
    async with serving_http(
        handler, ListenAddress("127.0.0.1", 0), limits=PortLimits(), most_body_bytes=MOST_BODY_BYTES
    ) as address:
        yield address


async def said(request: bytes) -> bytes:
    """All that the server says to these bytes until it closes the connection, or is silent for a minute."""
    answer = b""
    async with served() as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request)
        try:
            async with asyncio.timeout(60):
                while piece := await reader.read(1 << 16):
                    answer += piece
        except TimeoutError:
            answer += b"(open)"
        writer.close()
        await writer.wait_closed()
    return answer


def post(body: bytes, *more: bytes, path: bytes = b"/echo") -> bytes:
    lines = [b"POST %b HTTP/1.1" % path, b"Host: here", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join([*lines, b"", body])


async def test_requests_behind_each_other_are_answered_in_their_order_on_one_connection() -> None:
    answer = await said(post(b"later") + post(b"one") + post(b"two"))
    assert [answer.find(word) > 0 for word in (b"later", b"one", b"two")] == [True] * 3
    assert answer.find(b"later") < answer.find(b"one") < answer.find(b"two")
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.endswith(b"(open)")


async def test_a_connection_that_is_to_be_closed_is() -> None:
    assert (await said(post(b"one", b"Connection: close") + post(b"two"))).endswith(b"\r\n\r\none")
    assert (await said(b"POST /echo HTTP/1.0\r\nContent-Length: 3\r\n\r\none")).startswith(b"HTTP/1.0 200 OK")


async def test_a_body_may_come_in_chunks() -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b"\r\n\r\nabcdef" in await said(head + b"3\r\nabc\r\n3;x=y\r\ndef\r\n0\r\n\r\n")


async def test_an_acknowledged_answer_follows_its_head() -> None:
    answer = await said(post(b"", path=b"/acknowledged"))
    assert b"Wait: 5" in answer
    assert answer.endswith(b"\r\n\r\na\r\nin the end\r\n0\r\n\r\n(open)")
    old = await said(b"POST /acknowledged HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    assert old.endswith(b"\r\n\r\nin the end")


async def test_who_asks_before_sending_is_told_to_go_on() -> None:
    head, _, body = post(b"abc", b"Expect: 100-continue").partition(b"\r\n\r\n")
    async with served() as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.readuntil(b"abc")).startswith(b"HTTP/1.1 200 OK")
        writer.close()


async def test_a_head_is_asked_for_without_its_body() -> None:
    answer = await said(b"HEAD /hello%20there?a=b HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert b"Content-Length: 5" in answer
    assert answer.endswith(b"\r\n\r\n")


REFUSED = {
    "unknown path": (b"GET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n", 404),
    "wrong method": (b"GET /echo HTTP/1.1\r\nHost: here\r\n\r\n", 405),
    "fault": (b"GET /fail HTTP/1.1\r\nHost: here\r\n\r\n", 500),
    "long body": (post(b"x" * (MOST_BODY_BYTES + 1)), 413),
    "packed body": (post(b"abc", b"Content-Encoding: gzip"), 415),
    "two lengths": (post(b"abc", b"Content-Length: 4"), 400),
    "length and chunks": (post(b"abc", b"Transfer-Encoding: chunked"), 400),
    "bad chunk": (b"POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "long line": (b"GET /echo HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 400),
    "long line, and another request": (
        b"GET /echo HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n",
        400,
    ),
    "endless line": (b"GET /echo HTTP/1.1\r\nX: " + b"x" * 900_000, 400),
    "tunnel": (b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n", 400),
    "line without a colon": (post(b"x", b"Content-Length"), 400),
    "half a body": (b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf", 408),
}


@pytest.mark.parametrize(("request_bytes", "status"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_answered_is_refused(request_bytes: bytes, status: int) -> None:
    answer = await said(request_bytes)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_trailer_without_an_end_is_refused() -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with served() as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(head)
        await asyncio.sleep(1)
        writer.write(b"0\r\nX: " + b"x" * 100_000)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()


async def test_an_upgrade_is_answered_as_if_it_had_not_been_asked_for() -> None:
    answer = await said(post(b"", b"Connection: Upgrade", b"Upgrade: h2c"))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b"\r\n\r\n")
