"""The stages: every scenario can be played on the embedded cluster, and some are on a real API server as well."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from control_plane.cluster import ControlPlane
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.port import Cluster, NotFound
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.simulation.workload import Workload
from scenarios.stage import Stage

HURRY = 20.0
QUIET_SECONDS = 6.0


@pytest.fixture
def stage() -> Stage:
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


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.real_kubernetes)])
def any_stage(request: pytest.FixtureRequest, stage: Stage) -> Stage:
    """Both, one after the other."""
    if request.param == "embedded":
        return stage
    return on_a_real_api_server(request.getfixturevalue("controllers"))


def on_a_real_api_server(control_plane: ControlPlane) -> Stage:
    clock = SystemClock()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Cluster]:
        access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
        async with KubernetesCluster(access, clock=clock, randomness=Random(1)) as cluster:
            await clear(cluster)
            yield cluster
            await clear(cluster)

    return Stage(opened, clock, HURRY, QUIET_SECONDS)


async def clear(cluster: Cluster) -> None:
    """Take away what an earlier test left: our controller looks after every Node there is."""
    for node in (await cluster.list(Node)).items:
        await delete(cluster, node)
        await Workload(cluster).clear_node(node.metadata.name)
    for config in (await cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items:
        metadata = structs.replace(config.metadata, finalizers=[])
        await cluster.replace(structs.replace(config, metadata=metadata), manager="scenarios")
        await delete(cluster, config)
    for kind in (ClusterSubnet, ClusterSubnetState):
        for item in (await cluster.list(kind, SYSTEM_NAMESPACE)).items:
            await delete(cluster, item)


async def delete(cluster: Cluster, item: Resource) -> None:
    try:
        await cluster.delete(type(item), item.metadata.name, item.metadata.namespace)
    except NotFound:
        return
