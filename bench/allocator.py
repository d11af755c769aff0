"""How many grants the allocator makes in a second, on either database, and whether the size of a subnet matters.

Every figure is with the database on the disk before the answer: SQLite with synchronous=FULL, PostgreSQL with fsync. Callers
that wait at once share a transaction, so as many grants could be made as there are callers, in the time that the disk takes
for one write: the ratio to that is what the allocator itself takes.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.store import DatabaseAllocator, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.core.subnet.statement import StatedDemand
from podtide.runtime.clock import SystemClock

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from postgresql_server import NoPostgresql, PostgresqlServer

PART = "allocator"
NODES = 5_000
SECONDS = 2.5
MOST_GRANTS = 1_500
CALLERS = (1, 8, 64, 256)
MOST_BY_FSYNC = 64
"""With more callers than this, it is the processor and not the disk that is waited for."""
FSYNCS = 200
UTILIZATION_CALLS = 2_000
DEMAND_CALLS = 100
STATEMENTS = 200
SIZES = (24, 16, 8)
PUTS = 150
OPENINGS = 25
LARGEST_FILL = 65_536
RULES = StoreRules(cooldown_seconds=0.0, quarantine_seconds=0.001)
"""What is released is free at once, so that every round finds the same subnet."""


def measure() -> Iterator[tuple[str, str]]:
    """Grants on both databases, then what a subnet's size costs."""
    with TemporaryDirectory() as directory:
        fsync_seconds = _fsync_seconds(Path(directory))
        yield "one write of 4 kB and its fsync", f"{fsync_seconds * 1e3:.2f} ms"
        yield from _measure_database("SQLite", f"sqlite:///{directory}/grants.db", fsync_seconds)
    try:
        with PostgresqlServer(durable=True) as server:
            yield from _measure_database("PostgreSQL", server.url, fsync_seconds)
    except NoPostgresql as reason:
        yield "PostgreSQL", f"not measured: {reason}"
    with TemporaryDirectory() as directory:
        yield from _collect(_sizes(f"sqlite:///{directory}/sizes.db"))


def _measure_database(name: str, url: str, fsync_seconds: float) -> Iterator[tuple[str, str]]:
    for label, figure in _collect(_grants(url, fsync_seconds)):
        yield f"{name}: {label}", figure


def _fsync_seconds(directory: Path) -> float:
    """What the disk takes to have written a page, on the median."""
    times = []
    with (directory / "pages").open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            begin = perf_counter()
            file.write(b"p" * 4096)
            os.fdatasync(file.fileno())
            times.append(perf_counter() - begin)
    return median(times)


def _collect(figures: AsyncIterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Figures as they come, from an asynchronous measurement."""
    with asyncio.Runner() as runner, ExitStack() as stack:
        stack.callback(lambda: runner.run(_close(figures)))
        while (figure := runner.run(_next(figures))) is not None:
            yield figure


async def _next(figures: AsyncIterator[tuple[str, str]]) -> tuple[str, str] | None:
    return await anext(figures, None)


async def _close(figures: AsyncIterator[tuple[str, str]]) -> None:
    await figures.aclose()  # type: ignore[attr-defined]  # it is a generator


async def _grants(url: str, fsync_seconds: float) -> AsyncIterator[tuple[str, str]]:
    async with await open_allocator(url, clock=SystemClock(), rules=RULES, migrate=True) as allocator:
        await allocator.add_subnet(SubnetSpec(network="bench", name="pods", cidrs=("10.0.0.0/16",)))
        nodes = [_Node(allocator, f"node-{number}") for number in range(NODES)]
        await asyncio.gather(*(node.hold(0) for node in nodes))
        for callers in CALLERS:
            words = f"{callers} caller{'s' if callers > 1 else ''}"
            at_most = MOST_GRANTS if callers <= MOST_BY_FSYNC else NODES
            rates = {batch: await _grants_per_second(nodes[:at_most], batch, callers) for batch in (16, 1)}
            for batch, rate in rates.items():
                yield f"grants of {batch}, {words}", f"{rate:,.0f}/s ({rate * batch:,.0f} IPs/s)"
            if callers <= MOST_BY_FSYNC:
                ratio = rates[1] * fsync_seconds / callers
                yield f"grants of 1, {words} : {words} per fsync", f"{ratio:.2f}"
        await asyncio.gather(*(node.state(_stated(number % STATEMENTS)) for number, node in enumerate(nodes)))
        demand = await allocator.demand("bench", "pods")
        assert (len(demand.alike), sum(alike.containers for alike in demand.alike)) == (STATEMENTS, NODES)
        times: list[float] = []
        for _ in range(DEMAND_CALLS):
            begin = perf_counter()
            await allocator.demand("bench", "pods")
            times.append(perf_counter() - begin)
        yield f"demand of {NODES:,} containers, {STATEMENTS} distinct", f"{median(times) * 1e3:.2f} ms"
        begin = perf_counter()
        for _ in range(UTILIZATION_CALLS):
            await allocator.utilization("bench", "pods")
        yield "utilization, not cached", f"{UTILIZATION_CALLS / (perf_counter() - begin):,.0f}/s"


async def _grants_per_second(nodes: list["_Node"], batch: int, callers: int) -> float:
    """Nodes that hold a primary get a batch, one after the other for each caller; then they give it back."""
    queue = iter(nodes)
    served: list[_Node] = []
    begin = perf_counter()

    async def caller() -> None:
        for node in queue:
            if perf_counter() - begin > SECONDS:
                return
            await node.hold(batch)
            served.append(node)

    await asyncio.gather(*(caller() for _ in range(callers)))
    seconds = perf_counter() - begin
    await asyncio.gather(*(node.hold(0) for node in served))
    return len(served) / seconds


async def _sizes(url: str) -> AsyncIterator[tuple[str, str]]:
    async with await open_allocator(url, clock=SystemClock(), rules=RULES, migrate=True) as allocator:
        opened: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(OPENINGS):
            for size, times in opened.items():
                begin = perf_counter()
                await allocator.add_subnet(_subnet(size))
                times.append(perf_counter() - begin)
                await allocator.remove_subnet("bench", f"size-{size}")
        yield "opening a /24", f"{median(opened[24]) * 1e3:.2f} ms"
        yield "opening a /8 : opening a /24", f"{median(opened[8]) / median(opened[24]):.2f}"
        put = {size: await _filled(allocator, size) for size in SIZES}
        taken: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(PUTS):
            for size, node in put.items():
                begin = perf_counter()
                await node.hold(16)
                taken[size].append(perf_counter() - begin)
                await node.hold(0)
        yield "one PUT of 16 in a /24, an eighth of it in use", f"{median(taken[24]) * 1e3:.2f} ms"
        yield "one PUT in a /16 : in a /24", f"{median(taken[16]) / median(taken[24]):.2f}"
        yield "one PUT in a /8 : in a /24", f"{median(taken[8]) / median(taken[24]):.2f}"


def _stated(demand: int) -> StatedDemand:
    return StatedDemand(low=demand, high=demand + 15, demand=demand, batch=16, buffer="0.5")


def _subnet(size: int) -> SubnetSpec:
    return SubnetSpec(network="bench", name=f"size-{size}", cidrs=(f"{size}.0.0.0/{size}",))


async def _filled(allocator: DatabaseAllocator, size: int) -> "_Node":
    """A node in a subnet of that size of which an eighth is in use, with holes."""
    subnet = await allocator.add_subnet(_subnet(size))
    missing = subnet.capacity // 8
    for number in count():
        if missing <= 0:
            break
        node = _Node(allocator, f"filler-{size}-{number}", subnet.name)
        wanted = min(missing, LARGEST_FILL)
        await node.hold(wanted)
        await node.give_back(wanted // 64)
        missing -= wanted
    node = _Node(allocator, f"node-{size}", subnet.name)
    await node.hold(0)
    return node


class _Node:
    """A node that wishes."""

    def __init__(self, allocator: DatabaseAllocator, name: str, subnet: str = "pods") -> None:
        self._allocator = allocator
        self._name = name
        self._subnet = subnet
        self._generation = 0
        self._container: AllocatedContainer | None = None
        self._stated: StatedDemand | None = None

    async def hold(self, secondaries: int) -> None:
        """Ask for so many in all; what is too much is released."""
        held = self._container.addresses if self._container else ()
        await self._wish(secondaries, tuple(address.name for address in held[secondaries:]))

    async def state(self, stated: StatedDemand) -> None:
        """Say what the demand is, and change nothing else."""
        self._stated = stated
        await self._wish(len(self._container.addresses) if self._container else 0, ())

    async def give_back(self, secondaries: int) -> None:
        """Release every n-th address, so many of them."""
        assert self._container is not None
        held = self._container.addresses
        step = max(1, len(held) // max(1, secondaries))
        released = tuple(address.name for address in held[::step])
        await self._wish(len(held) - len(released), released)

    async def _wish(self, secondaries: int, release: tuple[str, ...]) -> None:
        self._generation += 1
        self._container = await self._allocator.put_container(
            Wish(
                id=self._name,
                network="bench",
                subnet=self._subnet,
                cluster="bench",
                node=self._name,
                request_uid=self._name,
                generation=self._generation,
                count=secondaries,
                release=release,
                stated=self._stated,
            )
        )
