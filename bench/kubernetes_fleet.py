"""A thousand nodes on a real API server, from a request to its answer, beside what the API server takes by itself.

The agents are played by writers of this process, which write requests as agents do; allocator and controller are
processes. A request and its answer are two writes. As many writers as there were then write the same two to objects of
which podtide knows nothing, as fast as they are answered: what podtide adds is the ratio. Both take turns, part by part
of the nodes, so that whatever else the machine does meanwhile befalls both.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import structlog
from msgspec import structs

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.controller.fencing import MANAGER as CONTROLLER
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.metadata_keys import AGENT_MANAGER as AGENT
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime

sys.path.append(str(Path(__file__).parents[1] / "tools"))

from control_plane.binaries import binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from fleet_programs import FleetPrograms
from process_costs import peak_memory_bytes

PART = "kubernetes"
NODES = 1_000
TURNS = 5
AGENTS = 16
"""Requests that are written at a time: as many as the controller carries out at a time."""
WRITERS = 2 * AGENTS
REQUEST = 15
WRITES_PER_NODE = 2
UNKNOWN_TO_PODTIDE = "default"
"""The namespace of the bare objects."""


def measure() -> Iterator[tuple[str, str]]:
    """Nodes that join, requests that are answered, and the same writes without podtide."""
    try:
        found = binaries()
    except CannotBuild as reason:
        yield f"kube-apiserver: not measured, {reason}", "-"
        return
    with ControlPlane(found) as control_plane, FleetPrograms(control_plane) as programs:
        yield from asyncio.run(_measure(control_plane.kubeconfig, programs))


async def _measure(kubeconfig: Path, programs: FleetPrograms) -> list[tuple[str, str]]:
    names = [f"node-{number}" for number in range(NODES)]
    answering = bare = 0.0
    async with Fleet.connected(kubeconfig) as fleet:
        joining = await _seconds(fleet.join(names))
        before = programs.cpu_seconds()
        for turn in range(TURNS):
            part = names[turn::TURNS]
            answering += await _seconds(fleet.request(part))
            await fleet.make_bare(part)
            bare += await _seconds(fleet.write_bare(part))
    after = programs.cpu_seconds()
    through, alone = (WRITES_PER_NODE * NODES / seconds for seconds in (answering, bare))
    memory = peak_memory_bytes(programs.controller_pid) / 1e6
    return [
        (f"{NODES:,} nodes, from Node to status with a primary", f"{NODES / joining:,.0f} nodes/s"),
        (f"{NODES:,} nodes, from request to status", f"{NODES / answering:,.0f} nodes/s"),
        ("of that, the controller", f"{after.controller - before.controller:.1f} CPU s"),
        ("of that, the allocator", f"{after.allocator - before.allocator:.1f} CPU s"),
        ("the controller's memory, at most", f"{memory:.0f} MB"),
        (f"kube-apiserver: the same writes bare, {WRITERS} at a time", f"{alone:,.0f} writes/s"),
        ("writes through podtide : bare writes", f"{through / alone:.2f}"),
    ]


async def _seconds(work: Awaitable[None]) -> float:
    begin = perf_counter()
    await work
    return perf_counter() - begin


class Fleet:
    """The nodes, and what their agents would write."""

    def __init__(self, cluster: KubernetesCluster, configs: Informer[NodeNetworkConfig]) -> None:
        self._cluster = cluster
        self._configs = configs
        self._waiting: set[str] = set()
        self._wanted = 0
        self._done = asyncio.Event()
        configs.add_handler(self._hear)

    @classmethod
    @asynccontextmanager
    async def connected(cls, kubeconfig: Path) -> AsyncIterator["Fleet"]:
        """A fleet that hears of what is written."""
        access = find_access(kubeconfig=kubeconfig, environment={}, home=Path("/nowhere"))
        clock, randomness = SystemClock(), system_randomness()
        async with KubernetesCluster(access, clock=clock, randomness=randomness) as cluster:
            configs = Informer(
                cluster,
                NodeNetworkConfig,
                Scope(namespace=SYSTEM_NAMESPACE),
                runtime=Runtime(clock=clock, randomness=randomness, log=structlog.get_logger()),
            )
            following = asyncio.create_task(configs.run())
            try:
                yield cls(cluster, configs)
            finally:
                following.cancel()
                await asyncio.wait({following})

    async def join(self, names: Sequence[str]) -> None:
        """Make Nodes, and wait until each has its NodeNetworkConfig and in it a container."""

        async def make(name: str) -> None:
            await self._cluster.create(Node(metadata=ObjectMeta(name=name)), manager="bench")

        self._expect(names, 0)
        await _each(names, make, AGENTS)
        await self._done.wait()

    async def request(self, names: Sequence[str]) -> None:
        """Let nodes ask for addresses, and wait until each has them."""

        async def ask(name: str) -> None:
            await self._ask(self._known(name))

        self._expect(names, REQUEST)
        await _each(names, ask, AGENTS)
        await self._done.wait()

    async def make_bare(self, names: Sequence[str]) -> None:
        """Make objects like the nodes', where nobody looks after them."""

        async def make(name: str) -> None:
            place = ObjectMeta(name=name, namespace=UNKNOWN_TO_PODTIDE)
            await self._cluster.create(NodeNetworkConfig(metadata=place), manager=CONTROLLER)

        await _each(names, make, WRITERS)

    async def write_bare(self, names: Sequence[str]) -> None:
        """Write such an object's request and, as soon as that is answered, its status."""

        async def write(name: str) -> None:
            known = self._known(name)
            place = ObjectMeta(name=name, namespace=UNKNOWN_TO_PODTIDE)
            asked = await self._ask(structs.replace(known, metadata=place))
            answered = structs.replace(asked, status=known.status)
            await self._cluster.replace_status(answered, manager=CONTROLLER)

        await _each(names, write, WRITERS)

    async def _ask(self, config: NodeNetworkConfig) -> NodeNetworkConfig:
        """Write a request as an agent does."""
        there = config.metadata
        wish = NodeNetworkConfig(
            metadata=ObjectMeta(name=there.name, namespace=there.namespace, uid=there.uid),
            spec=NodeNetworkConfigSpec(requested_ip_count=REQUEST),
        )
        return await self._cluster.apply(wish, manager=AGENT)

    def _known(self, name: str) -> NodeNetworkConfig:
        config = self._configs.get(Key(SYSTEM_NAMESPACE, name))
        assert config is not None
        return config

    def _expect(self, names: Sequence[str], count: int) -> None:
        self._wanted = count
        self._waiting = set(names)
        self._done.clear()

    def _hear(self, _old: NodeNetworkConfig | None, new: NodeNetworkConfig | None) -> None:
        if new and new.status.network_containers and new.status.assigned_ip_count == self._wanted:
            self._waiting.discard(new.metadata.name)
            if not self._waiting:
                self._done.set()


async def _each(names: Sequence[str], work: Callable[[str], Awaitable[None]], writers: int) -> None:
    """Do it for every name, so many at a time."""

    async def take(share: Sequence[str]) -> None:
        for name in share:
            await work(name)

    await asyncio.gather(*(take(names[first::writers]) for first in range(writers)))
