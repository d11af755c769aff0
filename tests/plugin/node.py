"""A node for the plugin: a real agent as a process of its own, on a cluster in which the test grants addresses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import structs

from cli.processes import Program, running, served_cluster
from podtide.cluster.embedded import EmbeddedCluster
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
)

NAME = "node-1"
MANAGER = "test"


class PluginNode:
    """The node, whose agent comes and goes as the test wants it."""

    def __init__(self, directory: Path, cluster: EmbeddedCluster) -> None:
        self.socket = directory / "run" / "agent.sock"
        self._state = directory / "state"
        self._kubeconfig = directory / "kubeconfig"
        self._cluster = cluster
        self._granted: list[str] = []

    async def join(self) -> None:
        """Register the node, which gets an empty network container."""
        node = await self._cluster.create(Node(metadata=ObjectMeta(name=NAME)), manager=MANAGER)
        owner = OwnerReference(
            api_version="v1", kind="Node", name=NAME, uid=node.metadata.uid, controller=True
        )
        place = ObjectMeta(name=NAME, namespace=SYSTEM_NAMESPACE, owner_references=[owner])
        await self._cluster.create(NodeNetworkConfig(metadata=place), manager=MANAGER)
        await self.grant()

    async def grant(self, *ips: str) -> None:
        """Give the node these addresses too."""
        self._granted += ips
        config = await self._cluster.get(NodeNetworkConfig, NAME, SYSTEM_NAMESPACE)
        container = NetworkContainer(
            id=config.metadata.owner_references[0].uid,
            subnet_name="pods",
            primary_ip="10.1.0.4",
            subnet_address_space="10.1.0.0/24",
            default_gateway="10.1.0.1",
            version=1 + len(self._granted),
            ip_assignments=[IPAssignment(name=f"name-{ip}", ip=ip) for ip in self._granted],
        )
        status = NodeNetworkConfigStatus(network_containers=[container])
        await self._cluster.replace_status(structs.replace(config, status=status), manager=MANAGER)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Program]:
        """The agent, from when it listens until it is killed."""
        options = (
            *("--kubeconfig", self._kubeconfig, "--node-name", NAME),
            *("--state-directory", self._state, "--socket", self.socket, "--shrink-delay", "1h"),
        )
        async with running("agent", *options) as program:
            await program.logged("listening")
            reading = asyncio.create_task(
                _read_on(program)
            )  # or its log would fill the pipe, and it would stop
            try:
                yield program
            finally:
                reading.cancel()


async def _read_on(program: Program) -> None:
    assert program.process.stderr is not None
    while await program.process.stderr.readline():
        pass


@asynccontextmanager
async def plugin_node(directory: Path) -> AsyncIterator[PluginNode]:
    """A node without an agent, and without an address."""
    async with served_cluster(directory / "kubeconfig") as cluster:
        node = PluginNode(directory, cluster)
        await node.join()
        yield node
