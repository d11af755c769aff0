"""Secondary networks of a large cluster: one pod on every node, each with an interface in every one of ten networks.

The slices controller, leak repair and the agents are the real ones, on the embedded cluster and on virtual time: each call
takes as long as one to a busy API server, which works on so many at a time. So the seconds are the same on any machine;
only the processor time is this one's. Beside it stands the one-lease design (`networks_one_lease`), under the same
conditions.
"""

import asyncio
import io
from collections import Counter
from collections.abc import Iterator
from time import process_time

import msgspec
from msgspec import Struct

from busy_api_server import BusyApiServer, CountedLine, percentile
from podtide.agent.networks.secondary import SecondaryNetworks
from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster
from podtide.cni.ipam_config import parse_config
from podtide.controller.counts import ControllerCounts
from podtide.controller.guard import GuardedWrites, unguarded
from podtide.controller.repair.repair import Repair
from podtide.controller.slices.program import SliceController
from podtide.core.pool import Owner
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.pod import Container, Pod, PodSpec
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import Logger, make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.settings import Settings

PART = "networks"
SIZES = (500, 1_000, 5_000)
NETWORKS = 10
AT_ONCE = 40
_PATIENCE_SECONDS = 3600.0
_IDLE_SECONDS = 600.0


class Fleet:
    """A cluster with networks, a controller, and an agent on every node."""

    def __init__(self, nodes: int) -> None:
        self.clock = LoopClock()
        self.log: Logger = make_logger(io.StringIO(), self.clock, level="error")
        self.server = BusyApiServer()
        self.calls: Counter[str] = Counter()
        self.traffic: Counter[str] = Counter()
        self.nodes = [f"node-{number:04}" for number in range(nodes)]
        self.configs = [parse_config(network_text(number)) for number in range(NETWORKS)]
        self.agents: dict[str, SecondaryNetworks] = {}
        self._tasks: list[asyncio.Task[object]] = []

    def line(self, program: str) -> Cluster:
        """A way to the API server for one of all agents, or for the controller."""
        return CountedLine(self.server, self.calls, self.traffic, program)

    async def open(self) -> None:
        """Networks are defined, nodes join, and every one of them gets its slices."""
        for number, config in enumerate(self.configs):
            place = ObjectMeta(name=config.name, namespace="default")
            spec = NetworkAttachmentDefinitionSpec(config=network_text(number))
            item = NetworkAttachmentDefinition(metadata=place, spec=spec)
            await self.server.cluster.create(item, manager="bench")
        self._start_controller()
        for name in self.nodes:
            await self.join(name)
        await self.until_cut(len(self.nodes))

    def _start_controller(self) -> None:
        line, counts, settings = self.line("controller"), ControllerCounts(), Settings()
        randomness = seeded_randomness("controller")
        nodes = Informer(line, Node, clock=self.clock, randomness=randomness, log=self.log)
        slices = SliceController(
            line,
            settings=settings,
            counts=counts,
            nodes=nodes,
            clock=self.clock,
            randomness=randomness,
            log=self.log,
        )
        repair = Repair(
            line,
            writes=GuardedWrites(line, unguarded, counts.writes),
            nodes=nodes,
            settings=settings,
            counts=counts.repair,
            clock=self.clock,
            randomness=randomness,
            log=self.log,
        )

        async def lead() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(nodes.run())
                group.create_task(slices.run())
                await nodes.synced.wait()
                group.create_task(repair.run())

        self._tasks.append(asyncio.create_task(lead()))

    async def join(self, name: str) -> None:
        """A node with an agent comes."""
        await self.server.cluster.create(Node(metadata=ObjectMeta(name=name)), manager="bench")
        agent = self.agents[name] = SecondaryNetworks(
            self.line("agents"),
            name,
            settings=Settings(),
            clock=self.clock,
            randomness=seeded_randomness(name),
            log=self.log,
        )
        self._tasks.append(asyncio.create_task(agent.run()))

    async def until_cut(self, nodes: int) -> None:
        """Wait until every node has a pool of every network."""
        deadline = self.clock.monotonic() + _PATIENCE_SECONDS
        while len((await self.server.cluster.list(IPPool)).items) < nodes * NETWORKS:
            assert self.clock.monotonic() < deadline
            await asyncio.sleep(1.0)

    async def add_pod(self, node: str, name: str, networks: int = NETWORKS) -> list[float]:
        """The runtime attaches a pod to its networks, one after the other. Answers how long each took."""
        spec = PodSpec(node_name=node, containers=[Container(name="main", image="none")])
        pod = await self.server.cluster.create(
            Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec), manager="bench"
        )
        took = []
        for number, config in enumerate(self.configs[:networks]):
            began = self.clock.monotonic()
            owner = Owner(f"sandbox-{name}", f"net{number}", pod.metadata.uid, "default", name, config.name)
            await self.agents[node].add(owner, config, arrived=began)
            took.append(self.clock.monotonic() - began)
        return took

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks:
            assert not task.done(), task
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.server.cluster.close()


class Outcome(Struct, frozen=True, kw_only=True):
    """What a cluster of one size came to."""

    nodes: int
    cut_seconds: float
    add_seconds: float
    p99_seconds: float
    writes: int
    reads: int
    burst_seconds: float
    burst_writes: int
    agents_bytes: int
    controller_bytes: int
    idle_writes: int
    cpu_seconds: float

    @property
    def adds(self) -> int:
        """How many addresses were handed out."""
        return self.nodes * NETWORKS


def measure() -> Iterator[tuple[str, str]]:
    """Every size, and how the largest compares with the smallest."""
    outcomes = []
    for nodes in SIZES:
        outcomes.append(outcome := virtual_time.run(run(nodes)))
        yield from _told(outcome)
    smallest, largest = outcomes[0], outcomes[-1]
    growth = (largest.writes / largest.adds) / (smallest.writes / smallest.adds)
    yield f"writes per ADD, {largest.nodes:,} nodes : {smallest.nodes:,} nodes", f"{growth:.2f}"


async def run(nodes: int) -> Outcome:
    """All there is to measure of one size."""
    cpu = process_time()
    fleet = Fleet(nodes)
    clock = fleet.clock
    began = clock.monotonic()
    await fleet.open()
    cut_seconds = clock.monotonic() - began
    fleet.calls.clear()
    began = clock.monotonic()
    took = await asyncio.gather(*(fleet.add_pod(node, f"pod-of-{node}") for node in fleet.nodes))
    add_seconds, calls = clock.monotonic() - began, fleet.calls.copy()
    began = clock.monotonic()
    fleet.calls.clear()
    await asyncio.gather(
        *(fleet.add_pod(fleet.nodes[0], f"burst-{number}", networks=1) for number in range(AT_ONCE))
    )
    burst_seconds, burst_writes = clock.monotonic() - began, fleet.calls["agents writes"]
    fleet.traffic.clear()
    await fleet.join("node-late")
    await fleet.until_cut(nodes + 1)
    traffic = fleet.traffic.copy()
    await asyncio.sleep(_IDLE_SECONDS)  # whatever is still to come of it
    fleet.calls.clear()
    await asyncio.sleep(_IDLE_SECONDS)
    idle = sum(count for what, count in fleet.calls.items() if what.endswith("writes"))
    await fleet.close()
    return Outcome(
        nodes=nodes,
        cut_seconds=cut_seconds,
        add_seconds=add_seconds,
        p99_seconds=percentile([each for pod in took for each in pod], 0.99),
        writes=calls["agents writes"],
        reads=calls["agents reads"],
        burst_seconds=burst_seconds,
        burst_writes=burst_writes,
        agents_bytes=traffic["agents"],
        controller_bytes=traffic["controller"],
        idle_writes=idle,
        cpu_seconds=process_time() - cpu,
    )


def network_text(number: int) -> str:
    """A network that is cut into 8,192 slices of 62 addresses."""
    ipam = {
        "type": "podtide",
        "network_name": f"network-{number}",
        "range": f"10.{8 * number}.0.0/13",
        "node_slice_size": "/26",
    }
    document = {"cniVersion": "1.1.0", "name": f"network-{number}", "type": "macvlan", "ipam": ipam}
    return msgspec.json.encode(document).decode()


def _told(outcome: Outcome) -> Iterator[tuple[str, str]]:
    size = f"{outcome.nodes:,} nodes, {NETWORKS} networks"
    yield f"{size}: slices and pools made", f"{outcome.cut_seconds:.0f} s"
    yield f"{size}: {outcome.adds:,} addresses for one pod on each", f"{outcome.add_seconds:.1f} s"
    yield f"{size}: API writes, reads", f"{outcome.writes:,}, {outcome.reads:,}"
    yield f"{size}: writes per ADD", f"{outcome.writes / outcome.adds:.2f}"
    yield f"{size}: ADD, p99", f"{outcome.p99_seconds * 1e3:.0f} ms"
    yield (
        f"{size}: {AT_ONCE} ADDs at once on one node",
        f"{outcome.burst_seconds * 1e3:.0f} ms, {outcome.burst_writes} writes",
    )
    yield (
        f"{size}: watched when a node joins, by all agents, by the controller",
        f"{outcome.agents_bytes:,} B, {outcome.controller_bytes / 1e3:,.0f} kB",
    )
    yield f"{size}: writes in ten idle minutes, beside the leader's Lease", f"{outcome.idle_writes}"
    yield f"{size}: processor time of all of it, in one process", f"{outcome.cpu_seconds:.0f} s"
