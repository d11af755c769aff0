"""A Node deleted and registered again, on a real kube-apiserver: its addresses move, and what its pods show stays theirs."""

import asyncio
import io
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from msgspec import structs

from control_plane.cluster import ControlPlane
from patience import PATIENCE_SECONDS
from podtide.allocator.store import DatabaseAllocator, InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.port import Cluster, NotFound
from podtide.controller.options import ControllerOptions
from podtide.controller.program import Controller
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node, NodeStatus, NodeSystemInfo
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.pod import Pod, PodContainer, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

HASTY = Settings(contact_timeout_seconds=1, quarantine_seconds=2)
OPTIONS = ControllerOptions(cluster="east", network="blue", subnet="again", secondary_networks=False)


@asynccontextmanager
async def controlled(control_plane: ControlPlane) -> AsyncIterator[tuple[Cluster, DatabaseAllocator]]:
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    clock = SystemClock()
    async with (
        KubernetesCluster(access, clock=clock, randomness=Random(1)) as cluster,
        await open_allocator(
            "sqlite:///:memory:",
            clock=clock,
            rules=StoreRules(quarantine_seconds=2),
            executor=InlineExecutor(),
            migrate=True,
        ) as allocator,
    ):
        await allocator.add_subnet(SubnetSpec(network="blue", name="again", cidrs=("10.77.0.0/24",)))
        log = make_logger(io.StringIO(), clock)
        controller = Controller(
            cluster,
            allocator,
            OPTIONS,
            runtime=Runtime(clock=clock, randomness=Random(1), log=log, settings=HASTY),
        )
        running = asyncio.create_task(controller.run())
        try:
            yield cluster, allocator
        finally:
            running.cancel()
            await asyncio.wait({running})


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(NotFound):
                if await holds():
                    return
            await asyncio.sleep(0.1)


def registering(name: str, machine: str) -> Node:
    info = NodeSystemInfo(machine_id=machine, system_uuid=f"uuid-{machine}", boot_id=f"boot-{machine}")
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(node_info=info))


async def held(cluster: Cluster, node: str, uid: str) -> list[str]:
    config = await cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)
    return [
        ip
        for each in config.status.network_containers
        if each.id == uid
        for ip in (each.primary_ip, *(assigned.ip for assigned in each.ip_assignments))
    ]


async def cluster_has(cluster: Cluster, node: str) -> bool:
    try:
        await cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)
    except NotFound:
        return False
    return True


async def test_addresses_move_with_the_machine_and_wait_for_its_pods(control_plane: ControlPlane) -> None:
    name = f"again-{uuid.uuid4().hex[:8]}"
    async with controlled(control_plane) as (cluster, allocator):
        first = await cluster.create(registering(name, name), manager="kubelet")

        async def is_there() -> bool:
            return bool(await held(cluster, name, first.metadata.uid))

        await until(is_there)
        config = await cluster.get(NodeNetworkConfig, name, SYSTEM_NAMESPACE)
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, uid=config.metadata.uid)
        spec = NodeNetworkConfigSpec(requested_ip_count=3)
        await cluster.apply(NodeNetworkConfig(metadata=place, spec=spec), manager="agent")

        async def has_all() -> bool:
            return len(await held(cluster, name, first.metadata.uid)) == 4

        await until(has_all)
        had = await held(cluster, name, first.metadata.uid)

        await cluster.delete(Node, name)
        second = await cluster.create(registering(name, name), manager="kubelet")

        async def has_moved() -> bool:
            return await held(cluster, name, second.metadata.uid) == had

        await until(has_moved)

        pod = Pod(
            metadata=ObjectMeta(name=name, namespace="default"),
            spec=PodSpec(node_name=name, containers=[PodContainer(name="c", image="i")]),
        )
        made = await cluster.create(pod, manager="test")
        shown = PodStatus(phase=PodPhase.RUNNING, pod_ip=had[1], pod_ips=[PodIP(ip=had[1])])
        made = await cluster.replace_status(structs.replace(made, status=shown), manager="kubelet")
        await cluster.delete(Node, name)
        await cluster.create(registering(name, f"another-{name}"), manager="kubelet")

        async def only_the_pods_waits() -> bool:
            left = (await allocator.quarantined(node=name)).items
            return [each.addresses for each in left] == [(had[1],)]

        await until(only_the_pods_waits)
        ended = structs.replace(shown, phase=PodPhase.SUCCEEDED)
        await cluster.replace_status(structs.replace(made, status=ended), manager="kubelet")

        async def nothing_waits() -> bool:
            return not (await allocator.quarantined(node=name)).items

        await until(nothing_waits)
        await cluster.delete(Node, name)

        async def is_gone() -> bool:
            return not await cluster_has(cluster, name)

        await until(is_gone)
