"""A burst of pods on one node: how often its agent writes what it needs, and when the last pod has its address.

Controller and agent are processes. The cluster is served by this one, so that all pods are there in a moment; then all
of their sandboxes ask for an address at once.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from msgspec import Struct

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.listening import ListenAddress
from podtide.simulation.nodes.pods import new_pod

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from node_with_agent import MANAGER, NAME, NodeWithAgent
from plugin_calls import output, request

PART = "agent"
PODS = 250
ADDRESSES = 15
"""What an idle node has: a batch of 16 with the primary."""


class Burst(Struct, frozen=True):
    """How it went: seconds are since the first pod."""

    writes: int
    asked_for: int
    created_seconds: float
    served_seconds: float


def measure() -> Iterator[tuple[str, str]]:
    """One burst, from a pool that is far too small for it."""
    burst = asyncio.run(_play())
    label = f"burst of {PODS} pods on one node"
    yield f"{label}: writes of its request", f"{burst.writes} (for {burst.asked_for})"
    yield f"{label}: last pod created after", f"{burst.created_seconds:.2f} s"
    yield f"{label}: last ADD answered after", f"{burst.served_seconds:.2f} s"


async def _play() -> Burst:
    with TemporaryDirectory() as directory, ExitStack() as programs:
        kubeconfig = Path(directory, "kubeconfig")
        async with _served(kubeconfig) as cluster:
            node = NodeWithAgent(addresses=ADDRESSES, kubeconfig=kubeconfig)
            await asyncio.to_thread(programs.enter_context, node)
            return await _burst(cluster, node.socket)


@asynccontextmanager
async def _served(kubeconfig: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(kinds=SERVED_KINDS)
    async with serving(cluster.server, ListenAddress("127.0.0.1", 0)) as url:
        write_kubeconfig(kubeconfig, url)
        yield cluster
    cluster.close()


async def _burst(cluster: EmbeddedCluster, socket: Path) -> Burst:
    before = await _config(cluster)
    begin = perf_counter()
    pods = [await cluster.create(new_pod(f"pod-{number}", NAME), manager=MANAGER) for number in range(PODS)]
    created_seconds = perf_counter() - begin
    answers = await asyncio.gather(*(_add(socket, pod) for pod in pods))
    served_seconds = perf_counter() - begin
    assert len(set(answers)) == PODS, "everybody has an address of its own"
    after = await _config(cluster)
    # What changes the spec makes a new generation, and nobody but the agent does that.
    writes = after.metadata.generation - before.metadata.generation
    return Burst(writes, after.spec.requested_ip_count, created_seconds, served_seconds)


async def _config(cluster: EmbeddedCluster) -> NodeNetworkConfig:
    return await cluster.get(NodeNetworkConfig, NAME, SYSTEM_NAMESPACE)


async def _add(socket: Path, pod: Pod) -> bytes:
    """What the ADD of the pod's sandbox is answered, which differs from all others by its address."""
    reader, writer = await asyncio.open_unix_connection(socket)
    name = pod.metadata.name
    writer.write(request("ADD", f"sandbox-of-{name}", pod=name, uid=pod.metadata.uid))
    response = await reader.read()
    writer.close()
    return output(response)
