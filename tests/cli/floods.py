"""Thousands of connections that ask nothing, held open against a running program."""

import asyncio
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from time import sleep
from urllib.parse import urlsplit

import aiohttp

from left_out import leave_out
from patience import PATIENCE_SECONDS
from podtide.runtime.port_limits import raise_descriptor_limit

CONNECTIONS = 5000
FEW_DESCRIPTORS = 1024
"""What the program may open, and cannot raise: it must live with what many machines give."""
MOST_LOG_BYTES = 100_000
HALF_BODIES = 300
"""More than any program has places for with these descriptors; each is a request, and so a line in some logs."""
SETTLING_SECONDS = 1.0
"""In which a program reads what was sent: who asks before might slip in."""
HALF_A_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: here\r\nX-Unfinished: "
HALF_A_BODY = " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"


@contextmanager
def flood(*urls: str, connections: int = CONNECTIONS, body: str = "POST /healthz") -> Iterator[None]:
    """That many connections to each, until the context ends: silent ones, halves of heads, and at last halves of bodies.

    `body` is the method and path of a request whose body is read.
    """
    if raise_descriptor_limit() < connections * len(urls) + 200:
        leave_out("flood", "this process may not open enough files: raise its limit (ulimit -Hn)")
    held = []
    try:
        for url in urls:
            place = urlsplit(url)
            for number in range(connections):
                connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE_SECONDS)
                held.append(connection)
                if number >= connections - HALF_BODIES:
                    connection.send((body + HALF_A_BODY).encode())
                elif number % 2:
                    connection.send(HALF_A_REQUEST)
        sleep(SETTLING_SECONDS)
        yield
    finally:
        for connection in held:
            connection.close()


@contextmanager
def silent_plugins(path: Path, connections: int = 600) -> Iterator[None]:
    """Connections to the plugin's own socket that say nothing."""
    with ExitStack() as held:
        for _ in range(connections):
            held.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        yield


class Flooded:
    """A program with few descriptors, whose log is a file."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process = process
        self._log = log

    async def said(self, event: str) -> str:
        """The line of this event, once it is there."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for line in self._log.read_text().splitlines():
                    if event in line:
                        return line
                await asyncio.sleep(0.02)

    def check(self) -> None:
        """It lives within its means, and has not written its log full."""
        assert self._process.returncode is None
        assert len(list(Path(f"/proc/{self._process.pid}/fd").iterdir())) < FEW_DESCRIPTORS * 3 // 4
        log = self._log.read_text()
        assert len(log) < MOST_LOG_BYTES
        assert "Traceback" not in log


@asynccontextmanager
async def flooded_program(directory: Path, *arguments: str | Path) -> AsyncIterator[Flooded]:
    """A podtide command that may open few files."""
    log = directory / "program.log"
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *("prlimit", f"--nofile={FEW_DESCRIPTORS}:{FEW_DESCRIPTORS}"),
            *(sys.executable, "-m", "podtide", *map(str, arguments)),
            stderr=stderr,
        )
    try:
        yield Flooded(process, log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def healthy(url: str) -> bool:
    """Whether somebody who comes now, with a connection of their own, is answered."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    connector = aiohttp.TCPConnector(force_close=True, ssl=False)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        session.get(f"{url}/healthz") as response,
    ):
        return response.status == 200
