"""Nodes by the thousand on a real API server: what their kubelets and agents write, and what is heard of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from msgspec import structs

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.listing import list_all
from podtide.cluster.port import Patch
from podtide.controller.fencing import MANAGER as CONTROLLER
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.metadata_keys import AGENT_MANAGER as AGENT
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE, UNREQUESTED_ANNOTATION
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime

AGENTS = 16
"""Requests that are written at a time: as many as the controller carries out at a time."""
WRITERS = 2 * AGENTS
REQUEST = 15
_MOST_IMAGES = 50
UNKNOWN_TO_PODTIDE = "default"
"""The namespace of the bare objects."""


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
        await each(names, make, AGENTS)
        await self._done.wait()

    async def request(self, names: Sequence[str]) -> None:
        """Let nodes ask for addresses, and wait until each has them."""

        async def ask(name: str) -> None:
            await self._ask(self._known(name))

        self._expect(names, REQUEST)
        await each(names, ask, AGENTS)
        await self._done.wait()

    async def report(self, names: Sequence[str], moment: str) -> None:
        """Let the kubelet of every node write its status, as each does every five minutes if nothing differs."""

        async def write(name: str) -> None:
            status = kubelet_status(moment)
            await self._cluster.patch(
                Patch(Node, name, changes={"status": status}, status=True), manager="kubelet"
            )

        await each(names, write, AGENTS)

    async def published(self, resource: str) -> list[str]:
        """What every Node publishes of a resource; "" for nothing."""
        nodes = await list_all(self._cluster, Node)
        return [node.status.allocatable.get(resource, "") for node in nodes]

    async def make_bare(self, names: Sequence[str]) -> None:
        """Make objects like the nodes', where nobody looks after them."""

        async def make(name: str) -> None:
            place = ObjectMeta(name=name, namespace=UNKNOWN_TO_PODTIDE)
            await self._cluster.create(NodeNetworkConfig(metadata=place), manager=CONTROLLER)

        await each(names, make, WRITERS)

    async def write_bare(self, names: Sequence[str]) -> None:
        """Write such an object's request and, as soon as that is answered, its status."""

        async def write(name: str) -> None:
            known = self._known(name)
            place = ObjectMeta(name=name, namespace=UNKNOWN_TO_PODTIDE)
            asked = await self._ask(structs.replace(known, metadata=place))
            answered = structs.replace(asked, status=known.status)
            await self._cluster.replace_status(answered, manager=CONTROLLER)

        await each(names, write, WRITERS)

    async def _ask(self, config: NodeNetworkConfig) -> NodeNetworkConfig:
        """Write a request as an agent does."""
        there = config.metadata
        wish = NodeNetworkConfig(
            metadata=ObjectMeta(
                name=there.name,
                namespace=there.namespace,
                uid=there.uid,
                annotations={UNREQUESTED_ANNOTATION: "0"},
            ),
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


def kubelet_status(moment: str) -> dict[str, Any]:
    """A Node's status in the size that kubelets write it: with as many images as they report at most."""
    heartbeat = {"lastHeartbeatTime": moment, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            {"type": kind, "status": status, "reason": f"Kubelet{kind}", "message": "as seen", **heartbeat}
            for kind, status in (
                ("MemoryPressure", "False"),
                ("DiskPressure", "False"),
                ("PIDPressure", "False"),
                ("Ready", "True"),
            )
        ],
        "images": [
            {"names": [f"registry.example/team/image-{number}@sha256:{number:064x}"], "sizeBytes": 50_000_000}
            for number in range(_MOST_IMAGES)
        ],
    }


async def each(names: Sequence[str], work: Callable[[str], Awaitable[None]], writers: int) -> None:
    """Do it for every name, so many at a time."""

    async def take(share: Sequence[str]) -> None:
        for name in share:
            await work(name)

    await asyncio.gather(*(take(names[first::writers]) for first in range(writers)))
