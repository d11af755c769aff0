"""The slices controller on a real kube-apiserver: its writes are such as that takes, and quiet when nothing happens."""

import asyncio
import io
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from msgspec import structs

from control_plane.cluster import ControlPlane
from controller.slices.network_world import conf, held, ipam
from controller.world import CountedCluster
from podtide.cluster.informer import Informer
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.cluster.port import NotFound
from podtide.controller.counts import ControllerCounts
from podtide.controller.fencing import GuardedWrites, unguarded
from podtide.controller.options import NetworkOptions
from podtide.controller.slices.program import SliceController
from podtide.networks.confirmation import is_confirmed
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_GONE_ANNOTATION
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

HASTY = Settings(contact_timeout_seconds=1, quarantine_seconds=2)


@asynccontextmanager
async def controlled(control_plane: ControlPlane, namespace: str) -> AsyncIterator[CountedCluster]:
    """The API server, a namespace of our own in it, and a controller at work there."""
    control_plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    async with KubernetesCluster(access, clock=SystemClock(), randomness=Random(1)) as cluster:
        counted = CountedCluster(cluster)
        runtime = Runtime(
            clock=SystemClock(),
            randomness=Random(1),
            log=make_logger(io.StringIO(), SystemClock()),
            settings=HASTY,
        )
        counts = ControllerCounts()
        nodes = Informer(counted, Node, runtime=runtime)
        controller = SliceController(
            GuardedWrites(counted, unguarded, counts.writes),
            nodes,
            NetworkOptions(namespace=namespace),
            counts=counts,
            runtime=runtime,
        )
        running = asyncio.gather(nodes.run(), controller.run())
        try:
            yield counted
        finally:
            running.cancel()
            await asyncio.wait({running})


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(NotFound):
                if await holds():
                    return
            await asyncio.sleep(0.1)


async def test_nodes_and_networks_come_and_go(control_plane: ControlPlane) -> None:
    namespace = f"slices-{uuid.uuid4().hex[:8]}"
    node = Node(metadata=ObjectMeta(name=f"{namespace}-n1"))
    async with controlled(control_plane, namespace) as cluster:
        await cluster.create(node, manager="test")
        keys = ipam(network_name=namespace, range="fd00::/48", node_slice_size="/64")
        definition = NetworkAttachmentDefinition(
            metadata=ObjectMeta(name="blue", namespace=namespace),
            spec=NetworkAttachmentDefinitionSpec(config=conf(keys)),
        )
        await cluster.create(definition, manager="test")

        async def find() -> IPPool:
            return await cluster.get(IPPool, f"{namespace}-{node.metadata.name}", namespace)

        async def is_ready() -> bool:
            return is_confirmed(await find())

        await until(is_ready)  # that is the controller's last write of it, and no agent uses a pool before
        pool = await find()
        listed = await cluster.get(NodeSlicePool, namespace, namespace)
        assert listed.status is not None
        entries = {each.node_name: each.slice_range for each in listed.status.allocations}
        assert entries[node.metadata.name] == pool.spec.range

        cluster.writes.clear()
        spec = structs.replace(pool.spec, allocations=held(2**63 + 1))
        held_pool = await cluster.replace(structs.replace(pool, spec=spec), manager="agent")
        await asyncio.sleep(2)
        assert cluster.writes == ["replace IPPool"]  # the agent's

        await cluster.delete(Node, node.metadata.name)

        async def is_marked() -> bool:
            return NODE_GONE_ANNOTATION in (await find()).metadata.annotations

        await until(is_marked)
        marked = await find()
        assert marked.spec == held_pool.spec
        await cluster.replace(structs.replace(marked, spec=pool.spec), manager="repair")

        async def is_collected() -> bool:
            pools = (await cluster.list(IPPool, namespace)).items
            return pool.metadata.uid not in {each.metadata.uid for each in pools}

        await until(is_collected)
        await cluster.delete(NetworkAttachmentDefinition, "blue", namespace)

        async def is_given_up() -> bool:
            pools = (await cluster.list(IPPool, namespace)).items
            return not pools and not (await cluster.list(NodeSlicePool, namespace)).items

        await until(is_given_up)
