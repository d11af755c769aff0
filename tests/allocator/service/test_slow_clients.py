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
from podtide.allocator.service.server import serving
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
