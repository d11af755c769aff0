"""A server on the loopback address that answers as a test tells it to, byte by byte: well, badly, or not at all."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct

from accepted_connections import LOOPBACK, accepting
from podtide.cluster.kubernetes import Access, ApiServerTimeouts, KubernetesCluster
from podtide.cluster.kubernetes.access import Endpoint, User
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import seeded_randomness

QUICK = ApiServerTimeouts(connect_seconds=0.3, answer_seconds=0.3, silence_seconds=0.3)


class Received(Struct, frozen=True):
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Answering:
    """The other end of one request."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """These bytes, as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, document: Any = None, **headers: str) -> None:
        """A whole answer."""
        body = document if isinstance(document, bytes) else msgspec.json.encode(document)
        await self.send(_head(status, {"Content-Length": str(len(body)), **headers}) + body)

    async def begin_watch(self) -> None:
        """The head of a watch's answer."""
        await self.send(_head(200, {"Transfer-Encoding": "chunked"}))

    async def event(self, change: str, document: Any) -> None:
        """One event of a watch."""
        await self.chunk(msgspec.json.encode({"type": change, "object": document}) + b"\n")

    async def chunk(self, data: bytes) -> None:
        """Any bytes in the midst of a watch."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end_watch(self) -> None:
        """The end of a watch's answer, in good order."""
        await self.send(b"0\r\n\r\n")

    async def hang(self) -> None:
        """Say nothing more, and keep the connection."""
        await asyncio.Event().wait()


Handler = Callable[[Received, Answering], Awaitable[None]]


class LoopbackServer:
    """Where it listens, and what it was asked."""

    def __init__(self, handler: Handler) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.connections = 0
        self.was_asked = asyncio.Event()
        self.was_left = asyncio.Event()
        """A client closed its connection, or the handler did."""
        self.client_certificates: list[Any] = []
        self._handler = handler

    async def take_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until the handler raises ConnectionAbortedError, or the client leaves."""
        self.connections += 1
        self.client_certificates.append(writer.get_extra_info("peercert"))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await _read_request(reader)
                self.received.append(request)
                self.was_asked.set()
                await self._handler(request, Answering(writer))
        self.was_left.set()


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[LoopbackServer]:
    """A server that runs while the block does."""
    loopback = LoopbackServer(handler)
    async with accepting(loopback.take_connection, tls=tls) as port:
        loopback.url = f"{'https' if tls else 'http'}://{LOOPBACK}:{port}"
        yield loopback


def client(
    url: str, user: User | None = None, timeouts: ApiServerTimeouts = QUICK, **endpoint: Any
) -> KubernetesCluster:
    """Our adapter, on that server."""
    access = Access(
        endpoint=Endpoint(server=url, **endpoint), user=user or User(), found_in="the test's kubeconfig"
    )
    return KubernetesCluster(access, clock=SystemClock(), randomness=seeded_randomness(1), timeouts=timeouts)


def status(code: int, reason: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    """A refusal in Kubernetes' own shape."""
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message, **more}


def _head(status_code: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status_code} As Told", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_request(reader: asyncio.StreamReader) -> Received:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Received(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
