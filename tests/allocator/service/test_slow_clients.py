"""Clients that send half of what they announce, or what is no HTTP: answered or given up, without a traceback."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from random import Random
from urllib.parse import urlsplit

import pytest

from allocator.service.running import LOOPBACK, a_log, ask, open_store
from podtide.allocator.service.application import make_service
from podtide.allocator.service.server import MOST_HEAD_BYTES, serving
from podtide.runtime.clock import SystemClock
from podtide.runtime.port_limits import PortLimits

pytestmark = pytest.mark.real_time

LIMITS = PortLimits(connections=8, request_seconds=0.2, idle_seconds=1.0)
HALF_A_BODY = b"PUT /networks/blue/subnets/pods HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"


@asynccontextmanager
async def impatient(log: io.StringIO, limits: PortLimits = LIMITS) -> AsyncIterator[str]:
    """The URL of a service that waits for nobody."""
    async with await open_store() as store:
        service = make_service(store, log=a_log(log), clock=SystemClock(), randomness=Random(1))
        async with serving(service, LOOPBACK, limits=limits) as url:
            yield url


async def sent(url: str, request: bytes) -> bytes:
    """All that comes back until the service closes the connection."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    answer = b""
    async with asyncio.timeout(30):
        with suppress(ConnectionError):
            writer.write(request)
            answer = await reader.read()
    writer.close()
    return answer


async def test_a_body_that_does_not_come_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    log = io.StringIO()
    async with impatient(log) as url:
        assert (await sent(url, HALF_A_BODY)).startswith(b"HTTP/1.1 400")
        assert (await ask(url, "GET", "/healthz")).status == 200
    assert "Traceback" not in log.getvalue() + caplog.text


async def test_halves_of_bodies_displace_themselves_and_keep_nobody_out() -> None:
    patient = PortLimits(connections=8, request_seconds=60.0)
    async with impatient(io.StringIO(), patient) as url:
        place = urlsplit(url)
        with ExitStack() as held:
            for _ in range(3 * patient.connections):
                _, writer = await asyncio.open_connection(place.hostname, place.port)
                held.callback(writer.close)
                writer.write(HALF_A_BODY)
            await asyncio.sleep(0.3)  # all of them are read by then: who asks at once might slip in between
            async with asyncio.timeout(30):
                for _ in range(patient.connections):
                    assert (await ask(url, "GET", "/healthz")).status == 200


@pytest.mark.parametrize(
    "request_bytes", [b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-More: "]
)
async def test_half_a_head_is_given_up(request_bytes: bytes) -> None:
    async with impatient(io.StringIO()) as url:
        assert await sent(url, request_bytes) == b""


@pytest.mark.parametrize(
    "request_bytes", [b"\x16\x03\x01\x02\0", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n:\r\n\r\n"]
)
async def test_what_is_no_http_is_answered_with_400(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with impatient(io.StringIO()) as url:
        assert (await sent(url, request_bytes)).startswith(b"HTTP/1.1 400")
    assert all(record.exc_info is None for record in caplog.records if record.levelno >= logging.WARNING)


LONG = b"a" * (3 * MOST_HEAD_BYTES)
CHUNKED = b"PUT /networks/blue/subnets/pods HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + LONG,
        b"GET / HTTP/1.1\r\nX-More: " + LONG,
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: " + LONG + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * MOST_HEAD_BYTES,
        CHUNKED + b"1\r\n{\r\n0\r\nX-More: " + LONG,
        CHUNKED + b"1;" + LONG,
    ],
    ids=["path", "field", "whole", "fields", "trailer", "extension of a chunk"],
)
async def test_a_head_that_does_not_end_is_not_kept(request_bytes: bytes) -> None:
    patient = PortLimits(connections=8, request_seconds=60.0)
    async with impatient(io.StringIO(), patient) as url:
        assert (await sent(url, request_bytes))[:12] in {b"", b"HTTP/1.1 400"}
        assert (await ask(url, "GET", "/healthz")).status == 200


async def test_a_body_of_any_length_does_not_count_as_head() -> None:
    size = 4 * MOST_HEAD_BYTES
    head = f"PUT /networks/blue/subnets/pods HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n"
    request_bytes = f"{head}Connection: close\r\n\r\n{'[' * size}".encode()
    async with impatient(io.StringIO(), PortLimits()) as url:
        answer = await sent(url, request_bytes)
    assert b"head" not in answer
    assert answer.startswith(b"HTTP/1.1 4")
