"""Two nodes with all that is theirs, made as the controller makes it, for tests of who may touch what."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from msgspec import Struct, structs

from deploy.installed import NAMESPACE, Installed, connected
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.resources.base import ObjectMeta, OwnerReference, Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import CONTAINER_FINALIZER, NODE_ANNOTATION
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from real_kubernetes import clear_config

R = TypeVar("R", bound=Resource)

HERE, THERE = "node-a", "node-b"
MANAGER = "test"
CLASSIC = "10.5.0.0-24"
"""The pool of a range that all nodes share."""
RESERVED = {HERE: "10.5.0.1", THERE: "10.5.0.2", "": "10.5.0.3"}
"""By the node whose agent made it, a reservation; Whereabouts says no node."""


class Stage(Struct, frozen=True):
    """`cluster` is asked as one of the programs, `admin` as who may do everything."""

    admin: KubernetesCluster
    cluster: KubernetesCluster

    async def of(self, kind: type[R], name: str) -> R:
        return await self.admin.get(kind, name, "" if kind is Node else NAMESPACE)


Attempt = Callable[[Stage], Awaitable[object]]


def place(name: str, **annotations: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations)


def pool(name: str, range_: str, **annotations: str) -> IPPool:
    return IPPool(metadata=place(name, **annotations), spec=IPPoolSpec(range=range_, allocations={}))


def lease(name: str, holder: str, **annotations: str) -> Lease:
    return Lease(metadata=place(name, **annotations), spec=LeaseSpec(holder_identity=holder))


def reservation(name: str, node: str) -> OverlappingRangeIPReservation:
    spec = OverlappingRangeIPReservationSpec(podref="default/web")
    marks = {NODE_ANNOTATION: node} if node else {}
    return OverlappingRangeIPReservation(metadata=place(name, **marks), spec=spec)


async def make(admin: KubernetesCluster) -> None:
    for name, slice_ in ((HERE, "10.4.1.0/24"), (THERE, "10.4.2.0/24")):
        node = await admin.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)
        owner = OwnerReference(
            api_version="v1", kind="Node", name=name, uid=node.metadata.uid, controller=True
        )
        config = structs.replace(
            place(name, **{"example.org/note": "mine"}),
            labels={"example.org/team": "network"},
            owner_references=[owner],
            finalizers=[CONTAINER_FINALIZER],
        )
        await admin.create(NodeNetworkConfig(metadata=config), manager=MANAGER)
        await admin.create(pool(f"blue-{name}", slice_, **{NODE_ANNOTATION: name}), manager=MANAGER)
        await admin.create(lease(f"blue-{name}", name), manager=MANAGER)
    await admin.create(pool(CLASSIC, "10.5.0.0/24"), manager=MANAGER)
    for node_name, address in RESERVED.items():
        await admin.create(reservation(address, node_name), manager=MANAGER)
    await admin.create(ClusterSubnet(metadata=place("subnet")), manager=MANAGER)


async def clear(admin: KubernetesCluster) -> None:
    """Leave nothing to the tests that share the control plane."""
    for name in (HERE, THERE):
        await clear_config(admin, name)
    for kind in (IPPool, NodeSlicePool, OverlappingRangeIPReservation, ClusterSubnet):
        for item in (await admin.list(kind, NAMESPACE)).items:
            await admin.delete(kind, item.metadata.name, NAMESPACE)
    for taken in (await admin.list(Lease, NAMESPACE)).items:
        if HERE in taken.metadata.name or THERE in taken.metadata.name:
            await admin.delete(Lease, taken.metadata.name, NAMESPACE)
    for name in (HERE, THERE):
        await admin.delete(Node, name)


@asynccontextmanager
async def stage(installed: Installed, who: str) -> AsyncIterator[Stage]:
    kubeconfig = {
        "agent": lambda: installed.agent(HERE),
        "unbound agent": installed.unbound_agent,
        "controller": installed.controller,
        "allocator": installed.allocator,
    }[who]()
    async with connected(installed.control_plane.kubeconfig) as admin, connected(kubeconfig) as cluster:
        yield Stage(admin, cluster)


async def request_for(stage: Stage, node: str, **annotations: str) -> None:
    """An apply of a request, as the agent states it."""
    there = await stage.of(NodeNetworkConfig, node)
    meta = structs.replace(place(node, **annotations), uid=there.metadata.uid)
    wish = NodeNetworkConfig(metadata=meta, spec=NodeNetworkConfigSpec(requested_ip_count=16))
    await stage.cluster.apply(wish, manager=MANAGER)


async def allocate_in(stage: Stage, name: str) -> None:
    there = await stage.of(IPPool, name)
    taken = {"5": IPAllocation(id="sandbox", podref="default/web")}
    spec = structs.replace(there.spec, allocations=taken)
    await stage.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)


async def take_lease(stage: Stage, name: str, holder: str) -> None:
    there = await stage.of(Lease, name)
    spec = structs.replace(there.spec, holder_identity=holder)
    await stage.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)
