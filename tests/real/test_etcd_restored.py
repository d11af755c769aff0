"""A real etcd restored from a backup under running programs: nodes are served again, and no address is given twice."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.networks.network_bench import owner, understood
from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.port import Cluster, ClusterError
from podtide.controller.options import ControllerOptions
from podtide.controller.program import Controller
from podtide.core.errors import RetryError
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

NODE = "restored"
SHARED = understood({"range": "10.9.0.0/24"})
_PATIENCE_SECONDS = 240.0
"""A watch from a version that the server has not reached is silent: it takes a while to be known as that."""


@asynccontextmanager
async def running(*loops: Awaitable[Any]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            with suppress(ClusterError):
                if await holds():
                    return
            await asyncio.sleep(0.5)


async def ask(cluster: Cluster, count: int) -> None:
    """State the node's request as its agent does, and wait until it is granted."""
    there = await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
    place = ObjectMeta(name=NODE, namespace=SYSTEM_NAMESPACE, uid=there.metadata.uid)
    spec = NodeNetworkConfigSpec(requested_ip_count=count)
    await cluster.apply(NodeNetworkConfig(metadata=place, spec=spec), manager="agent")
    await until(lambda: has(cluster, count))


async def has(cluster: Cluster, count: int) -> bool:
    config = await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
    granted = [each for each in config.status.conditions if each.type == "Granted" and each.status == "True"]
    return (
        any(each.observed_generation == config.metadata.generation for each in granted)
        and len(config.status.network_containers[0].ip_assignments) == count
    )


async def holders(cluster: Cluster) -> set[str]:
    pool = await cluster.get(IPPool, "10.9.0.0-24", SYSTEM_NAMESPACE)
    return {entry.id for entry in pool.spec.allocations.values()}


@pytest.mark.real_kubernetes
@pytest.mark.real_time
async def test_programs_go_on_after_a_real_etcd_was_restored(control_plane_binaries: Binaries) -> None:
    clock, log = SystemClock(), make_logger(io.StringIO(), SystemClock())
    with ControlPlane(control_plane_binaries) as control_plane:
        access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
        async with (
            await open_allocator("sqlite:///:memory:", clock=clock, migrate=True) as allocator,
            KubernetesCluster(access, clock=clock, randomness=Random(1)) as cluster,
        ):
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await cluster.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
            options = ControllerOptions(cluster="east", network="blue", subnet="pods")
            controller = Controller(
                cluster,
                allocator,
                options,
                runtime=Runtime(clock=clock, randomness=Random(2), log=log, settings=Settings()),
            )
            networks = SecondaryNetworks(
                cluster,
                NODE,
                disk=MemoryDisk(),
                runtime=Runtime(clock=clock, randomness=Random(3), log=log, settings=Settings()),
            )

            async def add(sandbox: str) -> str:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    while True:
                        with suppress(RetryError):
                            given = await networks.add(owner(sandbox), SHARED, arrived=clock.monotonic())
                            return str(given[0].address)

            async with running(controller.run(), networks.run()):
                await until(lambda: has(cluster, 0))
                await ask(cluster, 4)
                await add("c1")
                backup = await asyncio.to_thread(control_plane.back_up)
                await ask(cluster, 6)
                await ask(cluster, 8)
                lost = await add("c2")
                await asyncio.to_thread(control_plane.restore, backup)

                there = await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
                assert there.spec.requested_ip_count == 4
                assert await add("c3") != lost
                await until(lambda: has(cluster, 8))
                await ask(cluster, 10)
                assert await holders(cluster) == {"c1", "c2", "c3"}
