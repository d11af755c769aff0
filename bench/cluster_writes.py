"""How many writes a real API server takes from us: what no allocation through it can ever be faster than."""

import asyncio
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from podtide.cluster.kubernetes import Access, KubernetesCluster, find_access
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

sys.path.append(str(Path(__file__).parents[1] / "tools"))

from control_plane.binaries import binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild

PART = "cluster"
WRITERS = (1, 8, 32)
SECONDS = 5.0
NAMESPACE = "default"


def measure() -> Iterator[tuple[str, str]]:
    """Each writer replaces an object of its own, as agents do with their pools, and waits for the answer."""
    label = "kube-apiserver: replaces of IPPools"
    try:
        found = binaries()
    except CannotBuild as reason:
        yield f"{label}: not measured, {reason}", "-"
        return
    with ControlPlane(found) as control_plane:
        access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
        for writers in WRITERS:
            rate = asyncio.run(_replaces_per_second(access, writers))
            yield f"{label}, {writers} at a time (etcd without fsync)", f"{rate:,.0f}/s"


async def _replaces_per_second(access: Access, writers: int) -> float:
    async with KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness()) as cluster:
        begin = perf_counter()
        counts = await asyncio.gather(*(_replace(cluster, begin + SECONDS) for _ in range(writers)))
        return sum(counts) / (perf_counter() - begin)


async def _replace(cluster: KubernetesCluster, until: float) -> int:
    metadata = ObjectMeta(name=f"pool-{uuid.uuid4()}", namespace=NAMESPACE)
    pool = IPPool(metadata=metadata, spec=IPPoolSpec(range="10.0.0.0/24", allocations={}))
    pool = await cluster.create(pool, manager="bench")
    count = 0
    while perf_counter() < until:
        count += 1
        taken = {"1": IPAllocation(id=f"sandbox-{count}", podref="default/web")}
        wish = replace(pool, spec=replace(pool.spec, allocations=taken))
        pool = await cluster.replace(wish, manager="bench")
    return count
