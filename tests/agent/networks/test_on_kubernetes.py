"""Secondary networks on a real API server: what it refuses, stores and reports is what the embedded one does."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from io import StringIO
from pathlib import Path

import pytest
from msgspec import json

from agent.networks.network_bench import owner, understood
from control_plane.cluster import ControlPlane
from podtide.agent.networks.pool_object import copy_of
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.port import Cluster
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.node import Node
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

WIDE = understood({"range": "10.0.0.0/22"})
ADDS = 20


@asynccontextmanager
async def agent_of(node: str, cluster: Cluster, namespace: str) -> AsyncIterator[SecondaryNetworks]:
    await cluster.create(Node(metadata=ObjectMeta(name=node)), manager="test")
    networks = SecondaryNetworks(
        cluster,
        node,
        namespace=namespace,
        runtime=Runtime(
            clock=SystemClock(),
            randomness=system_randomness(),
            log=make_logger(StringIO(), SystemClock()),
            settings=Settings(add_wait_seconds=60.0),
        ),
    )
    running = asyncio.create_task(networks.run())
    try:
        yield networks
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await cluster.delete(Node, node)


@pytest.mark.real_time
async def test_two_nodes_hammering_one_pool_get_different_addresses_and_give_them_back(
    control_plane: ControlPlane,
) -> None:
    namespace = f"networks-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", namespace)
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    clock = SystemClock()
    async with (
        KubernetesCluster(access, clock=clock, randomness=system_randomness()) as cluster,
        agent_of(f"{namespace}-a", cluster, namespace) as one,
        agent_of(f"{namespace}-b", cluster, namespace) as other,
    ):
        given = await asyncio.gather(
            *(
                agent.add(owner(f"{name}{number}"), WIDE, arrived=clock.monotonic())
                for number in range(ADDS)
                for name, agent in (("a", one), ("b", other))
            )
        )
        assert len({each.address for [each] in given}) == 2 * ADDS
        pool = await cluster.get(IPPool, "10.0.0.0-22", namespace)
        assert len(pool.spec.allocations) == 2 * ADDS
        reserved = await cluster.list(OverlappingRangeIPReservation, namespace)
        assert len(reserved.items) == 2 * ADDS

        stored = control_plane.admin.request(
            "GET", f"/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/{namespace}/ippools/10.0.0.0-22"
        )
        assert len(json.encode(stored)) <= copy_of(pool).size + 500, "what is kept beside entries is counted"

        await asyncio.gather(
            *(
                agent.delete(owner(f"{name}{number}"), WIDE)
                for number in range(ADDS)
                for name, agent in (("a", one), ("b", other))
            )
        )
        pool = await cluster.get(IPPool, "10.0.0.0-22", namespace)
        assert pool.spec.allocations == {}
        assert (await cluster.list(OverlappingRangeIPReservation, namespace)).items == []
