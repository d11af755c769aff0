"""A node that is a network namespace: its agent runs inside, on a cluster that the test's process serves outside."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from msgspec import structs

from cli.processes import Program, running, served_cluster
from cli.test_agent import NODE, Place, join
from deploy.container_runtime import PLUGIN, Namespace, Runtime
from namespaces.relay import HERE, relay
from podtide.agent.cni_installation import CONFLIST
from podtide.cluster.embedded import EmbeddedCluster
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import CidrOfAddresses, NetworkContainer, NodeNetworkConfig


@asynccontextmanager
async def cluster_served_inside(kubeconfig: Path, names: Sequence[str]) -> AsyncIterator[EmbeddedCluster]:
    """A cluster that programs in these namespaces reach by this kubeconfig."""
    async with served_cluster(kubeconfig) as cluster:
        document = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
        port = urlsplit(document["clusters"][0]["cluster"]["server"]).port
        assert port is not None
        relaying = asyncio.create_task(relay([port], HERE, names))
        try:
            yield cluster
        finally:
            relaying.cancel()
            with suppress(asyncio.CancelledError):
                await relaying


class NodeInNamespace:
    """A node with a primary network of this type."""

    def __init__(self, directory: Path, namespace: Namespace, type_: str) -> None:
        directory.mkdir(exist_ok=True)
        self.namespace = namespace
        self._place = Place(directory)
        self._bin, self._conf = directory / "bin", directory / "net.d"
        self._options = (
            *("--cni-bin-directory", self._bin, "--cni-conf-directory", self._conf),
            *("--plugin", PLUGIN, "--network-type", type_),
        )

    @property
    def runtime(self) -> Runtime:
        """What runs the plugins of the network that the agent installed."""
        return Runtime(self.namespace, self._bin, self._conf / CONFLIST, self._place.socket)

    @property
    def has_network(self) -> bool:
        return (self._conf / CONFLIST).exists()

    def cluster(self) -> AbstractAsyncContextManager[EmbeddedCluster]:
        return cluster_served_inside(self._place.kubeconfig, [self.namespace.name])

    def agent(self, *options: str, confined: Sequence[str] = ()) -> AbstractAsyncContextManager[Program]:
        """Its agent, started by the command `confined` if there is one."""
        program = shutil.which("ip")
        assert program is not None
        inside = (program, "netns", "exec", self.namespace.name, *confined)
        return running(*self._place.options, *self._options, *options, inside=inside)

    def addresses_of(self, link: str) -> set[str]:
        """The addresses of an interface with their prefix lengths, but those that the kernel made; none without the interface."""
        shown = subprocess.run(
            self.namespace.command("ip", "-oneline", "address", "show", "dev", link, "scope", "global"),
            check=False,
            capture_output=True,
            text=True,
        ).stdout
        return {line.split()[3] for line in shown.splitlines()}


async def show_addresses(cluster: EmbeddedCluster, *ips: str, cidrs: list[CidrOfAddresses]) -> None:
    """The node has these addresses, shown as the request controller shows them: the first CIDR is the primary's."""
    await join(cluster, *ips)
    [container] = (await _config(cluster)).status.network_containers
    await show_containers(cluster, in_cidrs(container, cidrs))


async def show_containers(cluster: EmbeddedCluster, *containers: NetworkContainer) -> None:
    config = await _config(cluster)
    status = structs.replace(config.status, network_containers=list(containers))
    await cluster.replace_status(structs.replace(config, status=status), manager="test")


def in_cidrs(container: NetworkContainer, cidrs: list[CidrOfAddresses]) -> NetworkContainer:
    return structs.replace(
        container,
        primary_ip=cidrs[0].gateway.removesuffix(".1") + ".4",
        subnet_address_space=cidrs[0].cidr,
        default_gateway=cidrs[0].gateway,
        cidrs=cidrs if len(cidrs) > 1 else [],
    )


async def containers_of(cluster: EmbeddedCluster) -> list[NetworkContainer]:
    return (await _config(cluster)).status.network_containers


async def _config(cluster: EmbeddedCluster) -> NodeNetworkConfig:
    return await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
