"""A service to ask, in this process, on a free port of this machine."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import TextIO

import aiohttp
from msgspec import Struct

from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.service.application import make_service
from podtide.allocator.service.certificate import Certificate
from podtide.allocator.service.server import serving
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.store import DatabaseAllocator, InlineExecutor, open_allocator
from podtide.cluster.backoff import Backoff
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import Logger, make_logger

LOOPBACK = ListenAddress("127.0.0.1", 0)
QUICK = AllocatorTimeouts(
    answer_seconds=5.0, deadline_seconds=10.0, backoff=Backoff(floor_seconds=0.001, cap_seconds=0.002)
)


class Answer(Struct, frozen=True):
    """What came over the wire."""

    status: int
    headers: dict[str, str]
    text: str


async def open_store(clock: Clock | None = None) -> DatabaseAllocator:
    """An allocator that is forgotten when it is closed."""
    return await open_allocator(
        "sqlite:///:memory:", clock=clock or SystemClock(), executor=InlineExecutor(), migrate=True
    )


@asynccontextmanager
async def served(
    allocator: AdministeredAllocator,
    *,
    tokens: Tokens | None = None,
    certificate: Certificate | None = None,
    log_to: TextIO | None = None,
    refresh_seconds: float = 0.0,
    clock: Clock | None = None,
) -> AsyncIterator[str]:
    """The URL of a service over the allocator; utilization is read anew each time unless it is said otherwise."""
    service = make_service(
        allocator,
        log=a_log(log_to),
        clock=clock or SystemClock(),
        randomness=Random(1),
        tokens=tokens,
        refresh_seconds=refresh_seconds,
    )
    async with serving(service, LOOPBACK, certificate) as url:
        yield url


def a_log(stream: TextIO | None = None) -> Logger:
    """A log that tells everything, to nobody unless somebody listens."""
    return make_logger(stream or io.StringIO(), SystemClock(), level="debug")


def a_client(url: str, timeouts: AllocatorTimeouts = QUICK, **server: object) -> HttpAllocator:
    """The client of a service that runs in the test."""
    return HttpAllocator(
        AllocatorAddress(url=url, **server),  # type: ignore[arg-type]  # as Server checks
        timeouts=timeouts,
        randomness=Random(1),
    )


async def ask(
    url: str,
    method: str,
    path: str,
    body: bytes | AsyncIterator[bytes] = b"",
    headers: dict[str, str] | None = None,
) -> Answer:
    """One request as anybody might send it."""
    data = io.BytesIO(body) if isinstance(body, bytes) else body
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, f"{url}{path}", data=data) as response,
    ):
        return Answer(response.status, dict(response.headers), await response.text())
