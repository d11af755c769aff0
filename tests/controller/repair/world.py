"""A cluster with secondary networks in it, and a repair that is let look when the test says so."""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from cluster.faulty_cluster import Script
from controller.world import CountedCluster
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer
from podtide.cluster.port import NotFound, R
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import Check, GuardedWrites, unguarded
from podtide.controller.options import NetworkOptions
from podtide.controller.repair.repair_loop import RepairLoop
from podtide.core.audit.networks import NetworkPicture
from podtide.core.networks.leaks import LeakGrace, Orphaned
from podtide.networks.audit_picture import draw_networks
from podtide.networks.pods import CONFIG_HASH_ANNOTATION, NETWORK_STATUS_ANNOTATIONS
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.metadata_keys import NETWORK_ANNOTATION, NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.node import Node
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

MANAGER = "test"
PATIENCE = LeakGrace(
    leak_grace_seconds=Settings().leak_grace_seconds, quarantine_seconds=Settings().quarantine_seconds
)
GRACE = PATIENCE.seconds(Orphaned.GONE)
AT_ONCE = LeakGrace(leak_grace_seconds=0.0, quarantine_seconds=0.0)


class RepairWorld:
    """Objects in one line each, and looks at them."""

    def __init__(self, kinds: tuple[type[Resource], ...] = ALL_KINDS) -> None:
        self.cluster = EmbeddedCluster(kinds=kinds, clock=LoopClock(), randomness=seeded_randomness(1))
        self.lines = io.StringIO()
        self.faults = Script()
        self.counted = CountedCluster(self.cluster, self.faults)
        self.counts = RepairCounts()
        self.log = make_logger(self.lines, LoopClock())
        self.nodes = Informer(
            self.counted,
            Node,
            runtime=Runtime(clock=LoopClock(), randomness=seeded_randomness(2), log=self.log),
        )

    def repair(
        self, patience: LeakGrace = PATIENCE, *, check: Check = unguarded, schedule: str = ""
    ) -> RepairLoop:
        """A leader that begins its term."""
        return RepairLoop(
            GuardedWrites(self.counted, check, Counter()),
            self.nodes,
            NetworkOptions(repair_schedule=schedule),
            patience=patience,
            counts=self.counts,
            runtime=Runtime(clock=LoopClock(), randomness=seeded_randomness(3), log=self.log),
        )

    async def look_twice(self, repair: RepairLoop | None = None) -> RepairLoop:
        """Two looks, a grace period apart."""
        repair = repair or self.repair()
        await repair.look()
        await asyncio.sleep(GRACE)
        await repair.look()
        return repair

    async def node(self, name: str) -> Node:
        return await self.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)

    async def pod(
        self,
        podref: str,
        *,
        phase: PodPhase = PodPhase.RUNNING,
        node: str = "n1",
        shown: list[str] | None = None,
        config_hash: str = "",
    ) -> Pod:
        namespace, _, name = podref.partition("/")
        annotations = {CONFIG_HASH_ANNOTATION: config_hash} if config_hash else {}
        if shown is not None:
            status = [{"name": "blue", "interface": "net1", "ips": shown}]
            annotations[NETWORK_STATUS_ANNOTATIONS[0]] = msgspec.json.encode(status).decode()
        spec = PodSpec(node_name=node, containers=[PodContainer(name="main", image="none")])
        metadata = ObjectMeta(name=name, namespace=namespace, annotations=annotations)
        made = await self.cluster.create(Pod(metadata=metadata, spec=spec), manager=MANAGER)
        return await self.cluster.replace_status(
            replace(made, status=PodStatus(phase=phase)), manager=MANAGER
        )

    async def remove_pod(self, podref: str) -> None:
        namespace, _, name = podref.partition("/")
        pod = await self.cluster.get(Pod, name, namespace)
        await self.cluster.replace_status(
            replace(pod, status=PodStatus(phase=PodPhase.SUCCEEDED)), manager=MANAGER
        )
        await self.cluster.delete(Pod, name, namespace)

    async def attachment(self, name: str = "blue", **ipam: Any) -> NetworkAttachmentDefinition:
        config = {"cniVersion": "1.0.0", "name": name, "ipam": {"type": "podtide", **ipam}}
        spec = NetworkAttachmentDefinitionSpec(config=msgspec.json.encode(config).decode())
        place = ObjectMeta(name=name, namespace="default")
        return await self.cluster.create(
            NetworkAttachmentDefinition(metadata=place, spec=spec), manager=MANAGER
        )

    async def pool(
        self, name: str, cidr: str, held: dict[str, str] | None = None, *, node: str = "", network: str = ""
    ) -> IPPool:
        """A pool; `held` has `namespace/name`, or that and a uid behind `@`, by offset."""
        annotations = {NODE_ANNOTATION: node, NETWORK_ANNOTATION: network} if node else {}
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, annotations=annotations)
        allocations = {key: entry_for(pod) for key, pod in (held or {}).items()}
        spec = IPPoolSpec(range=cidr, allocations=allocations)
        return await self.cluster.create(IPPool(metadata=place, spec=spec), manager=MANAGER)

    async def take(self, pool: str, key: str, pod: str, sandbox: str = "sandbox") -> None:
        """An agent's write."""
        there = await self.cluster.get(IPPool, pool, SYSTEM_NAMESPACE)
        allocations = {**there.spec.allocations, key: entry_for(pod, sandbox)}
        changed = replace(there, spec=replace(there.spec, allocations=allocations))
        await self.cluster.replace(changed, manager="agent")

    async def reservation(self, name: str, pod: str) -> OverlappingRangeIPReservation:
        entry = entry_for(pod)
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
        spec = OverlappingRangeIPReservationSpec(
            podref=entry.podref, ifname=entry.ifname, container_id=entry.id, pod_uid=entry.pod_uid
        )
        return await self.cluster.create(
            OverlappingRangeIPReservation(metadata=place, spec=spec), manager=MANAGER
        )

    async def held(self, pool: str) -> dict[str, str]:
        """Who holds what in a pool."""
        there = await self.cluster.get(IPPool, pool, SYSTEM_NAMESPACE)
        return {key: entry.podref for key, entry in there.spec.allocations.items()}

    async def reserved(self) -> dict[str, str]:
        """Who has which reservation."""
        page = await self.cluster.list(OverlappingRangeIPReservation, SYSTEM_NAMESPACE)
        return {item.metadata.name: item.spec.podref for item in page.items}

    async def find(self, kind: type[R], name: str) -> R | None:
        try:
            return await self.cluster.get(kind, name, SYSTEM_NAMESPACE)
        except NotFound:
            return None

    async def picture(self) -> NetworkPicture:
        """What the audit is shown."""
        return draw_networks(
            (await self.cluster.list(NetworkAttachmentDefinition)).items,
            pools=(await self.cluster.list(IPPool)).items,
            reservations=(await self.cluster.list(OverlappingRangeIPReservation)).items,
            pods=(await self.cluster.list(Pod)).items,
        )


def entry_for(pod: str, sandbox: str = "sandbox") -> IPAllocation:
    podref, _, uid = pod.partition("@")
    return IPAllocation(id=sandbox, podref=podref, ifname="net1", pod_uid=uid)


@asynccontextmanager
async def a_world(*nodes: str, kinds: tuple[type[Resource], ...] = ALL_KINDS) -> AsyncIterator[RepairWorld]:
    """A world with these nodes, `n1` among them, which the repair has copies of."""
    world = RepairWorld(kinds)
    for name in {"n1", *nodes}:
        await world.node(name)
    following = asyncio.create_task(world.nodes.run())
    await world.nodes.synced.wait()
    try:
        yield world
    finally:
        following.cancel()
        await asyncio.wait({following})
        world.cluster.close()
