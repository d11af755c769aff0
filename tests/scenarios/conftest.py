"""The stages: every scenario is played on the embedded cluster, and once more on a real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from control_plane.cluster import ControlPlane
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.lease_record import released
from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.controller.program import LEASE
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.simulation.world.workload import Workload
from real_kubernetes import clear_config
from scenarios.stage import Stage

HURRY = 20.0
QUIET_SECONDS = 6.0
PATIENCE_SECONDS = 120.0


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.real_kubernetes)])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Both, one after the other."""
    if request.param == "embedded":
        return on_the_embedded_cluster()
    return on_a_real_api_server(request.getfixturevalue("controllers"))


@pytest.fixture
def embedded_stage() -> Stage:
    """For what would be too much for a real API server on a small machine."""
    return on_the_embedded_cluster()


def on_the_embedded_cluster() -> Stage:
    """The embedded cluster on virtual time."""
    clock = LoopClock()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Cluster]:
        cluster = EmbeddedCluster(clock=clock, randomness=Random(1))
        try:
            yield cluster
        finally:
            cluster.close()

    return Stage(opened, clock)


def on_a_real_api_server(control_plane: ControlPlane) -> Stage:
    """An API server that all tests of this process share, one after the other."""
    clock = SystemClock()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Cluster]:
        access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
        async with KubernetesCluster(access, clock=clock, randomness=Random(1)) as cluster:
            await clear(cluster)
            try:
                yield cluster
            finally:
                await clear(cluster)

    return Stage(opened, clock, HURRY, QUIET_SECONDS, PATIENCE_SECONDS)


async def clear(cluster: Cluster) -> None:
    """Take away what a test left: our controller looks after every Node there is."""
    nodes = {node.metadata.name for node in (await cluster.list(Node)).items}
    nodes |= {pod.spec.node_name for pod in (await cluster.list(Pod)).items if pod.spec.node_name}
    await asyncio.gather(*(clear_node(cluster, name) for name in nodes))
    for config in (await cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items:
        await clear_config(cluster, config.metadata.name)
    for kind in (ClusterSubnet, ClusterSubnetState):
        for item in (await cluster.list(kind, SYSTEM_NAMESPACE)).items:
            await cluster.delete(kind, item.metadata.name, SYSTEM_NAMESPACE)
    await free_lease(cluster)


async def clear_node(cluster: Cluster, name: str) -> None:
    with suppress(NotFound):
        await cluster.delete(Node, name)
    await Workload(cluster).clear_node(name)


async def free_lease(cluster: Cluster) -> None:
    """Let nobody lead: candidates wait for a leader that may be dead, and for one whose Lease may have been deleted."""
    place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
    while True:
        try:
            lease = await cluster.get(Lease, LEASE.name, LEASE.namespace)
            await cluster.replace(structs.replace(lease, spec=released(lease.spec)), manager="scenarios")
        except Conflict:
            continue  # the dead leader's last words
        except NotFound:
            await cluster.create(Lease(metadata=place, spec=released(LeaseSpec())), manager="scenarios")
        return
