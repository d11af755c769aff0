"""A cluster with nodes and NetworkAttachmentDefinitions, and slices controllers, all on virtual time; the test plays agents."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import structs

from cluster.faulty_cluster import Faults
from controller.world import CountedCluster
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer
from podtide.cluster.port import NotFound, R
from podtide.controller.counts import ControllerCounts
from podtide.controller.fencing import Check, GuardedWrites, unguarded
from podtide.controller.options import NetworkOptions
from podtide.controller.slices.program import SliceController
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.conditions import Condition
from podtide.resources.event import Event
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

QUARANTINE = Settings().quarantine_seconds
_A_MOMENT = 3.0
"""Virtual seconds in which a controller has done all that needs no waiting."""


async def moment(seconds: float = _A_MOMENT) -> None:
    await asyncio.sleep(seconds)


def ipam(**keys: object) -> dict[str, object]:
    """An IPAM object of type whereabouts; a key that is None is left out."""
    stated = {"type": "whereabouts", "range": "10.0.0.0/22", "node_slice_size": "/24", **keys}
    return {name: value for name, value in stated.items() if value is not None}


def conf(ipam_object: dict[str, object], name: str = "conf") -> str:
    """The configuration of a single plugin."""
    document = {"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": ipam_object}
    return msgspec.json.encode(document).decode()


class Replica:
    """One slices controller, started and stopped at will."""

    def __init__(
        self,
        world: "NetworkWorld",
        faults: Faults | None,
        *,
        options: NetworkOptions | None = None,
        check: Check = unguarded,
        room_changed: Callable[[str], None] | None = None,
    ) -> None:
        self.cluster = CountedCluster(world.cluster, faults)
        runtime = Runtime(
            clock=LoopClock(),
            randomness=seeded_randomness("slices"),
            log=make_logger(world.lines, LoopClock()),
            settings=Settings(),
        )
        self.nodes = Informer(self.cluster, Node, runtime=runtime)
        self.counts = ControllerCounts()
        self.controller = SliceController(
            GuardedWrites(self.cluster, check, self.counts.writes),
            self.nodes,
            options or NetworkOptions(),
            counts=self.counts,
            runtime=runtime,
        )
        if room_changed is not None:
            self.controller.count_rooms(room_changed)
        self._task: asyncio.Task[Any] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        await moment()
        assert not self._task.done(), self._task

    async def _run(self) -> None:
        await asyncio.gather(self.nodes.run(), self.controller.run())

    async def stop(self) -> None:
        """As killing it would: whatever it is at, it gets no further."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
            assert self._task.cancelled()


class NetworkWorld:
    """Where slices controllers run."""

    def __init__(self, kinds: tuple[type[Resource], ...]) -> None:
        self.cluster = EmbeddedCluster(kinds=kinds, clock=LoopClock(), randomness=seeded_randomness(1))
        self.lines = io.StringIO()
        self.replicas: list[Replica] = []

    async def start(self, faults: Faults | None = None, **options: Any) -> Replica:
        """Start another controller, the ones before having been stopped."""
        for before in self.replicas:
            await before.stop()
        replica = Replica(self, faults, **options)
        self.replicas.append(replica)
        await replica.start()
        return replica

    async def start_blind_to(self, name: str) -> Replica:
        """Start another controller, to which lists do not show a Node that is there."""
        replica = Replica(self, None)
        replica.cluster.hidden.add(name)
        self.replicas.append(replica)
        await replica.start()
        return replica

    async def add_nodes(self, *names: str) -> list[Node]:
        nodes = [Node(metadata=ObjectMeta(name=name)) for name in names]
        return [await self.cluster.create(node, manager="kubelet") for node in nodes]

    async def remove_node(self, name: str) -> None:
        await self.cluster.delete(Node, name)

    async def define(self, name: str, config: str, namespace: str = "default") -> NetworkAttachmentDefinition:
        """Make a NetworkAttachmentDefinition, or change it."""
        spec = NetworkAttachmentDefinitionSpec(config=config)
        found = await self.find(NetworkAttachmentDefinition, name, namespace)
        if found is not None:
            return await self.cluster.replace(structs.replace(found, spec=spec), manager="kubectl")
        place = ObjectMeta(name=name, namespace=namespace)
        return await self.cluster.create(
            NetworkAttachmentDefinition(metadata=place, spec=spec), manager="kubectl"
        )

    async def undefine(self, name: str, namespace: str = "default") -> None:
        await self.cluster.delete(NetworkAttachmentDefinition, name, namespace)

    async def list_slices(
        self, name: str, range_: str, size: str, *entries: tuple[str, str], **place: Any
    ) -> NodeSlicePool:
        """A NodeSlicePool as Whereabouts writes it."""
        pool = NodeSlicePool(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, **place),
            spec=NodeSlicePoolSpec(range=range_, slice_size=size),
            status=NodeSlicePoolStatus(
                allocations=[
                    NodeSliceAllocation(node_name=node, slice_range=slice_) for node, slice_ in entries
                ]
            ),
        )
        return await self.cluster.create(pool, manager="whereabouts")

    async def add_pool(self, name: str, range_: str, *offsets: int) -> IPPool:
        """An IPPool as Whereabouts makes it."""
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
        pool = IPPool(metadata=place, spec=IPPoolSpec(range=range_, allocations=held(*offsets)))
        return await self.cluster.create(pool, manager="whereabouts")

    async def hold(self, pool: str, *offsets: int) -> IPPool:
        """Have pods hold exactly these addresses of a pool, as an agent writes it."""
        found = await self.cluster.get(IPPool, pool, SYSTEM_NAMESPACE)
        spec = structs.replace(found.spec, allocations=held(*offsets))
        return await self.cluster.replace(structs.replace(found, spec=spec), manager="agent")

    async def lease(self, name: str, holder: str, **annotations: str) -> None:
        """A Lease with these annotations."""
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, annotations=annotations)
        lease = Lease(metadata=place, spec=LeaseSpec(holder_identity=holder))
        await self.cluster.create(lease, manager="agent")

    async def lease_of_pool(self, name: str, node: str) -> None:
        """A Lease as a node's agent takes it beside its pool, if there is none yet."""
        if await self.find(Lease, name) is None:
            await self.lease(name, node, **{NODE_ANNOTATION: node})

    async def reserve(self, name: str) -> None:
        reservation = OverlappingRangeIPReservation(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=OverlappingRangeIPReservationSpec(podref="default/web"),
        )
        await self.cluster.create(reservation, manager="agent")

    async def find(self, kind: type[R], name: str, namespace: str = SYSTEM_NAMESPACE) -> R | None:
        try:
            return await self.cluster.get(kind, name, namespace)
        except NotFound:
            return None

    async def find_reservation(self, name: str) -> bool:
        return await self.find(OverlappingRangeIPReservation, name) is not None

    async def has_list(self, name: str) -> bool:
        return await self.find(NodeSlicePool, name) is not None

    async def names(self, kind: type[Resource]) -> list[str]:
        return [item.metadata.name for item in (await self.cluster.list(kind)).items]

    async def slice_pool(self, name: str) -> NodeSlicePool:
        return await self.cluster.get(NodeSlicePool, name, SYSTEM_NAMESPACE)

    async def pool(self, name: str) -> IPPool:
        return await self.cluster.get(IPPool, name, SYSTEM_NAMESPACE)

    async def entries(self, name: str) -> list[tuple[str, str]]:
        """All entries of a NodeSlicePool, with node "" for a free slice."""
        status = (await self.slice_pool(name)).status
        assert status is not None
        return [(each.node_name, each.slice_range) for each in status.allocations]

    async def assigned(self, name: str) -> dict[str, str]:
        """Nodes and their slices."""
        return {node: slice_ for node, slice_ in await self.entries(name) if node}

    async def condition(self, name: str, kind: str) -> Condition | None:
        status = (await self.slice_pool(name)).status
        assert status is not None
        return next((each for each in status.conditions if each.type == kind), None)

    async def events(self, kind: type[Resource], name: str) -> list[tuple[str, str]]:
        """Reason and message of every Event about an object, oldest first."""
        found = [
            event
            for event in (await self.cluster.list(Event)).items
            if (event.involved_object.kind, event.involved_object.name) == (kind.api.kind, name)
        ]
        return [
            (event.reason, event.message)
            for event in sorted(found, key=lambda event: int(event.metadata.resource_version))
        ]


def held(*offsets: int) -> dict[str, IPAllocation]:
    return {
        str(offset): IPAllocation(id=f"box-{offset}", podref=f"default/p{offset}", ifname="net1")
        for offset in offsets
    }


@asynccontextmanager
async def a_network_world(*nodes: str, without: type[Resource] | None = None) -> AsyncIterator[NetworkWorld]:
    world = NetworkWorld(tuple(kind for kind in ALL_KINDS if kind is not without))
    await world.add_nodes(*nodes)
    try:
        yield world
    finally:
        for replica in world.replicas:
            await replica.stop()
        world.cluster.close()
