"""The adapters that keep the contract of the Cluster port."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from cluster.contract.harness import ClusterUnderTest, OpenCluster
from control_plane.cluster import ControlPlane
from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.kubernetes import Access, ApiServerTimeouts, KubernetesCluster, find_access
from podtide.cluster.kubernetes.access import Endpoint
from podtide.cluster.port import Cluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.runtime.listening import ListenAddress

LOOPBACK = ListenAddress("127.0.0.1", 0)
ADAPTERS = [
    "embedded",
    "embedded in a file",
    pytest.param("served", marks=pytest.mark.real_time),
    pytest.param("kubernetes", marks=pytest.mark.real_kubernetes),
]


@pytest.fixture(params=ADAPTERS)
def open_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> OpenCluster:
    """Opens a cluster in which the test has a namespace to itself."""
    if request.param == "served":
        return open_served
    if request.param == "kubernetes":
        control_plane: ControlPlane = request.getfixturevalue("controllers")
        return lambda: open_kubernetes(control_plane)
    file = tmp_path / "cluster.db" if request.param == "embedded in a file" else None

    @asynccontextmanager
    async def open_embedded() -> AsyncIterator[ClusterUnderTest]:
        cluster = EmbeddedCluster(file, clock=LoopClock())
        try:
            yield under_test(cluster, at_once(cluster.server.expire_history))
        finally:
            cluster.close()

    return open_embedded


@asynccontextmanager
async def open_served() -> AsyncIterator[ClusterUnderTest]:
    """The embedded cluster once more, through our HTTP server and our Kubernetes adapter."""
    embedded = EmbeddedCluster(kinds=SERVED_KINDS, limits=ApiServerLimits(bookmark_seconds=0.2))
    try:
        async with serving(embedded.server, LOOPBACK) as url:
            access = Access(endpoint=Endpoint(server=url), found_in="the contract suite")
            async with KubernetesCluster(access, clock=SystemClock(), randomness=Random(1)) as cluster:
                yield under_test(cluster, at_once(embedded.server.expire_history))
    finally:
        embedded.close()


@asynccontextmanager
async def open_kubernetes(control_plane: ControlPlane) -> AsyncIterator[ClusterUnderTest]:
    """A real API server, with the garbage collector at work."""
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    timeouts = ApiServerTimeouts(
        watch_seconds=10
    )  # the server sends a bookmark once a minute, and before a watch ends

    async def expire_history() -> None:
        await asyncio.to_thread(control_plane.expire_history)

    async with KubernetesCluster(
        access, clock=SystemClock(), randomness=Random(1), timeouts=timeouts
    ) as cluster:
        it = under_test(cluster, expire_history)
        for namespace in (it.namespace, it.other_namespace):
            control_plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield it


def under_test(cluster: Cluster, expire_history: Callable[[], Awaitable[None]]) -> ClusterUnderTest:
    """The cluster with a namespace that no other test has."""
    namespace = f"contract-{uuid.uuid4().hex[:8]}"
    return ClusterUnderTest(cluster, namespace, f"{namespace}-b", expire_history)


def at_once(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """What takes no time, to be awaited like what does."""

    async def run() -> None:
        act()

    return run
