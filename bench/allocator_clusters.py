"""Wishes of 64 clusters at once: an allocator as a process, over HTTP, and a token for each cluster.

Each cluster has 100 nodes and four connections, and asks on each as soon as the last answer came: as many callers as in the
largest row without HTTP. Every node is granted 16 addresses twice. The load is another process than the allocator, and its
requests are written before the time begins; it reads whole answers and looks at their status.
"""

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from time import perf_counter

import uvloop

from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.subnets import SubnetSpec

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from control_plane.json_http import JsonHttp
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process
from postgresql_server import NoPostgresql, PostgresqlServer
from process_costs import cpu_seconds

PART = "allocator"
CLUSTERS = 64
NODES = 100
CONNECTIONS = 4
ROUNDS = (0, 16, 32)
"""What a node wants in all, one wish after the other. The first, which makes it known and gives it its primary, does not count."""
SLOW = 0.99
CIDR = "10.0.0.0/14"


def measure() -> Iterator[tuple[str, str]]:
    """Wishes answered in a second, and how long the slowest took, on both databases."""
    with closing(Nursery()) as nursery:
        yield from _measure_database("SQLite", f"sqlite:///{nursery.directory}/clusters.db", nursery)
    try:
        with PostgresqlServer(durable=True) as server, closing(Nursery()) as nursery:
            yield from _measure_database("PostgreSQL", server.url, nursery)
    except NoPostgresql as reason:
        yield f"{CLUSTERS} clusters over HTTP, PostgreSQL", f"not measured: {reason}"


def _measure_database(name: str, url: str, nursery: Nursery) -> Iterator[tuple[str, str]]:
    (port,) = free_ports(1)
    holders = ["administration", *(f"cluster {_cluster(number)}" for number in range(CLUSTERS))]
    tokens = nursery.directory / "tokens"
    tokens.write_text(
        "\n".join(f"{hashlib.sha256(_token(who).encode()).hexdigest()} {who}" for who in holders)
    )
    server = JsonHttp(f"http://{LOOPBACK}:{port}")
    allocator = Process(
        nursery,
        [
            *(sys.executable, "-m", "podtide", "allocator", "--database", url),
            *("--listen", f"{LOOPBACK}:{port}", "--tokens", tokens),
        ],
        is_ready=lambda: server.is_up("/healthz"),
        log=nursery.directory / "allocator.log",
    )
    with ExitStack() as stack:
        allocator.start()
        stack.callback(allocator.kill)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            before = cpu_seconds(allocator.pid)
            all_seconds, times = runner.run(_load(port, nursery.directory))
            spent = cpu_seconds(allocator.pid) - before
    label = f"{CLUSTERS} clusters of {NODES} nodes over HTTP, {name}"
    yield f"{label}: grants", f"{len(times) / all_seconds:,.0f}/s"
    yield f"{label}: p99", f"{times[int(len(times) * SLOW)] * 1e3:.0f} ms"
    yield f"{label}: the allocator, per wish", f"{spent / (CLUSTERS * NODES * len(ROUNDS)) * 1e6:.0f} µs CPU"


async def _load(port: int, directory: Path) -> tuple[float, list[float]]:
    """How long the grants took in all, and each of them, the quickest first."""
    token_file = directory / "administration"
    token_file.write_text(_token("administration"))
    address = AllocatorAddress(url=f"http://{LOOPBACK}:{port}", token_file=token_file)
    async with HttpAllocator(address) as administration:
        await administration.add_subnet(SubnetSpec(network="bench", name="pods", cidrs=(CIDR,)))
    connections = [
        await _Connection.opened(port, _cluster(cluster), range(first, NODES, CONNECTIONS))
        for cluster in range(CLUSTERS)
        for first in range(CONNECTIONS)
    ]
    await asyncio.gather(*(connection.ask(0) for connection in connections))
    times: list[float] = []
    begin = perf_counter()
    for generation in range(1, len(ROUNDS)):
        for part in await asyncio.gather(*(connection.ask(generation) for connection in connections)):
            times += part
    seconds = perf_counter() - begin
    for connection in connections:
        connection.close()
    return seconds, sorted(times)


class _Connection:
    """A connection of a cluster, for some of its nodes."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cluster: str, nodes: Sequence[int]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._requests = [
            [_request(cluster, node, generation, count) for node in nodes]
            for generation, count in enumerate(ROUNDS)
        ]

    @classmethod
    async def opened(cls, port: int, cluster: str, nodes: Sequence[int]) -> "_Connection":
        return cls(*await asyncio.open_connection(LOOPBACK, port), cluster, nodes)

    def close(self) -> None:
        self._writer.close()

    async def ask(self, generation: int) -> list[float]:
        """Send each node's wish of a round, one after the other; how long each took."""
        times = []
        for request in self._requests[generation]:
            begin = perf_counter()
            self._writer.write(request)
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = await self._reader.readexactly(length)
            times.append(perf_counter() - begin)
            if not head.startswith(b"http/1.1 200 "):
                raise RuntimeError(f"a wish was refused: {answer.decode()}")
        return times


def _request(cluster: str, number: int, generation: int, count: int) -> bytes:
    node = f"{cluster}-node-{number}"
    wish = {
        "network": "bench",
        "subnet": "pods",
        "node": node,
        "request_uid": f"{node}-request",
        "generation": generation,
        "count": count,
        "stated": {"low": count, "high": count + 15, "demand": count, "batch": 16, "buffer": "0.5"},
    }
    body = json.dumps(wish).encode()
    head = (
        f"PUT /clusters/{cluster}/containers/{node} HTTP/1.1\r\nHost: {LOOPBACK}\r\n"
        f"Authorization: Bearer {_token(f'cluster {cluster}')}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _cluster(number: int) -> str:
    return f"cluster-{number}"


def _token(who: str) -> str:
    return f"token-of-{who.replace(' ', '-')}"
