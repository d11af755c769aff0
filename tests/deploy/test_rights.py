"""Every program may do what it has to, and not a step more. By their own tokens, on a real API server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from msgspec import Struct, structs

from deploy.installed import NAMESPACE, Installed, connected
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.cluster.port import Forbidden, NotFound
from podtide.resources.base import ObjectMeta, OwnerReference, Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.event import Event
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.marks import CONTAINER_FINALIZER, NODE_ANNOTATION
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod

R = TypeVar("R", bound=Resource)

HERE, THERE = "node-a", "node-b"
MANAGER = "test"
LEADER = "podtide-controller"
CLASSIC = "10.5.0.0-24"


class Stage(Struct, frozen=True):
    """Two nodes with all that is theirs, made as the controller makes it; `cluster` is asked as one of the programs."""

    admin: KubernetesCluster
    cluster: KubernetesCluster

    async def of(self, kind: type[R], name: str) -> R:
        return await self.admin.get(kind, name, "" if kind is Node else NAMESPACE)


Attempt = Callable[[Stage], Awaitable[object]]


def place(name: str, **annotations: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations)


def pool(name: str, range_: str, **annotations: str) -> IPPool:
    return IPPool(metadata=place(name, **annotations), spec=IPPoolSpec(range=range_, allocations={}))


def lease(name: str, holder: str) -> Lease:
    return Lease(metadata=place(name), spec=LeaseSpec(holder_identity=holder))


def reservation(name: str) -> OverlappingRangeIPReservation:
    spec = OverlappingRangeIPReservationSpec(podref="default/web")
    return OverlappingRangeIPReservation(metadata=place(name), spec=spec)


async def make(admin: KubernetesCluster) -> None:
    for name, slice_ in ((HERE, "10.4.1.0/24"), (THERE, "10.4.2.0/24")):
        node = await admin.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)
        owner = OwnerReference(
            api_version="v1", kind="Node", name=name, uid=node.metadata.uid, controller=True
        )
        config = structs.replace(place(name), owner_references=[owner], finalizers=[CONTAINER_FINALIZER])
        await admin.create(NodeNetworkConfig(metadata=config), manager=MANAGER)
        await admin.create(pool(f"blue-{name}", slice_, **{NODE_ANNOTATION: name}), manager=MANAGER)
        await admin.create(lease(f"blue-{name}", name), manager=MANAGER)
    await admin.create(pool(CLASSIC, "10.5.0.0/24"), manager=MANAGER)
    await admin.create(reservation("10.5.0.1"), manager=MANAGER)
    await admin.create(ClusterSubnet(metadata=place("subnet")), manager=MANAGER)


async def clear(admin: KubernetesCluster) -> None:
    """Leave nothing to the tests that share the control plane."""
    for name in (HERE, THERE):
        config = await admin.get(NodeNetworkConfig, name, NAMESPACE)
        freed = structs.replace(config.metadata, finalizers=[])
        await admin.replace(structs.replace(config, metadata=freed), manager=MANAGER)
    for kind in (NodeNetworkConfig, IPPool, OverlappingRangeIPReservation, ClusterSubnet):
        for item in (await admin.list(kind, NAMESPACE)).items:
            await admin.delete(kind, item.metadata.name, NAMESPACE)
    for taken in (await admin.list(Lease, NAMESPACE)).items:
        if taken.spec.holder_identity in {HERE, THERE}:
            await admin.delete(Lease, taken.metadata.name, NAMESPACE)
    for name in (HERE, THERE):
        await admin.delete(Node, name)


@pytest.fixture(scope="module")
def two_nodes(installed: Installed) -> Iterator[Installed]:
    """What is forbidden changes nothing, and what is allowed is in nobody's way: one set of objects serves all tests."""

    async def as_admin(work: Callable[[KubernetesCluster], Awaitable[None]]) -> None:
        async with connected(installed.control_plane.kubeconfig) as admin:
            await work(admin)

    asyncio.run(as_admin(make))
    yield installed
    asyncio.run(as_admin(clear))


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


def changed(config: NodeNetworkConfig, **metadata: object) -> NodeNetworkConfig:
    """An apply of a request, as the agent states it, with something more."""
    meta = ObjectMeta(
        **{"name": config.metadata.name, "namespace": NAMESPACE, "uid": config.metadata.uid, **metadata}  # type: ignore[arg-type]  # as ObjectMeta checks
    )
    return NodeNetworkConfig(metadata=meta, spec=NodeNetworkConfigSpec(requested_ip_count=16))


async def request_for(stage: Stage, node: str) -> None:
    await stage.cluster.apply(changed(await stage.of(NodeNetworkConfig, node)), manager=MANAGER)


async def disown(stage: Stage) -> None:
    mine = await stage.of(NodeNetworkConfig, HERE)
    owner = structs.replace(mine.metadata.owner_references[0], controller=False)
    await stage.cluster.apply(changed(mine, owner_references=[owner]), manager=MANAGER)


async def hold_up(stage: Stage) -> None:
    mine = await stage.of(NodeNetworkConfig, HERE)
    await stage.cluster.apply(changed(mine, finalizers=["example.org/mine"]), manager=MANAGER)


async def allocate_in(stage: Stage, name: str) -> None:
    there = await stage.of(IPPool, name)
    taken = {"5": IPAllocation(id="sandbox", podref="default/web")}
    spec = structs.replace(there.spec, allocations=taken)
    await stage.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)


async def widen_own_pool(stage: Stage) -> None:
    mine = await stage.of(IPPool, f"blue-{HERE}")
    spec = structs.replace(mine.spec, range="10.4.0.0/16")
    await stage.cluster.replace(structs.replace(mine, spec=spec), manager=MANAGER)


async def claim_pool(stage: Stage, name: str) -> None:
    there = await stage.of(IPPool, name)
    mine = structs.replace(there.metadata, annotations={NODE_ANNOTATION: HERE})
    await stage.cluster.replace(structs.replace(there, metadata=mine), manager=MANAGER)


async def take_lease(stage: Stage, name: str, holder: str) -> None:
    there = await stage.of(Lease, name)
    spec = structs.replace(there.spec, holder_identity=holder)
    await stage.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)


async def write_status(stage: Stage) -> None:
    mine = await stage.of(NodeNetworkConfig, HERE)
    status = structs.replace(mine.status, assigned_ip_count=250)
    await stage.cluster.replace_status(structs.replace(mine, status=status), manager=MANAGER)


async def relabel_node(stage: Stage) -> None:
    node = await stage.of(Node, HERE)
    labelled = structs.replace(node.metadata, labels={"podtide.io/subnet": "another"})
    await stage.cluster.replace(structs.replace(node, metadata=labelled), manager=MANAGER)


async def reserve_and_release(stage: Stage) -> None:
    made = await stage.cluster.create(reservation("10.5.0.9"), manager=MANAGER)
    await stage.cluster.get(OverlappingRangeIPReservation, "10.5.0.9", NAMESPACE)
    taken = structs.replace(made.spec, container_id="sandbox")
    await stage.cluster.replace(structs.replace(made, spec=taken), manager=MANAGER)
    await stage.cluster.delete(OverlappingRangeIPReservation, "10.5.0.9", NAMESPACE, uid=made.metadata.uid)


async def give_up_and_take_again(stage: Stage) -> None:
    await take_lease(stage, f"blue-{HERE}", "")
    await take_lease(stage, f"blue-{HERE}", HERE)


async def missing(stage: Stage, kind: type[Resource]) -> None:
    """To be told that something is not there one must be allowed to ask."""
    with pytest.raises(NotFound):
        await stage.cluster.get(kind, "missing", NAMESPACE)


AGENT_MAY: dict[str, Attempt] = {
    "see its Node": lambda it: it.cluster.get(Node, HERE),
    "list its Node": lambda it: it.cluster.list(Node, fields=f"metadata.name={HERE}"),
    "list the pods of its node": lambda it: it.cluster.list(Pod, fields=f"spec.nodeName={HERE}"),
    "see its NodeNetworkConfig": lambda it: it.cluster.get(NodeNetworkConfig, HERE, NAMESPACE),
    "list its NodeNetworkConfig": lambda it: it.cluster.list(
        NodeNetworkConfig, NAMESPACE, fields=f"metadata.name={HERE}"
    ),
    "state its own request": lambda it: request_for(it, HERE),
    "see what is in force in a subnet": lambda it: it.cluster.list(ClusterSubnet, NAMESPACE),
    "look for its slice": lambda it: missing(it, NodeSlicePool),
    "allocate from its own pool": lambda it: allocate_in(it, f"blue-{HERE}"),
    "allocate from a pool that all share": lambda it: allocate_in(it, CLASSIC),
    "make a pool that all share": lambda it: it.cluster.create(
        pool("10.6.0.0-16", "10.6.0.0/16"), manager=MANAGER
    ),
    "make a pool of a named network that all share": lambda it: it.cluster.create(
        pool("red-fd00---64", "fd00::/64"), manager=MANAGER
    ),
    "take the Lease of its pool": lambda it: it.cluster.create(lease(f"red-{HERE}", HERE), manager=MANAGER),
    "take the Lease of a pool that Whereabouts named": lambda it: it.cluster.create(
        lease(f"{HERE}-10.4.1.0-24", HERE), manager=MANAGER
    ),
    "give a Lease up and take it again": give_up_and_take_again,
    "reserve an address and release it": reserve_and_release,
}

AGENT_MAY_NOT: dict[str, Attempt] = {
    "state another node's request": lambda it: request_for(it, THERE),
    "write its own status": write_status,
    "make a NodeNetworkConfig": lambda it: it.cluster.create(
        NodeNetworkConfig(metadata=place("node-c")), manager=MANAGER
    ),
    "delete its own NodeNetworkConfig": lambda it: it.cluster.delete(NodeNetworkConfig, HERE, NAMESPACE),
    "change who owns its NodeNetworkConfig": disown,
    "hold its NodeNetworkConfig up": hold_up,
    "allocate from another node's pool": lambda it: allocate_in(it, f"blue-{THERE}"),
    "claim another node's pool": lambda it: claim_pool(it, f"blue-{THERE}"),
    "claim a pool that all share": lambda it: claim_pool(it, CLASSIC),
    "widen its own pool": widen_own_pool,
    "make a pool for itself": lambda it: it.cluster.create(
        pool("10.7.0.0-24", "10.7.0.0/24", **{NODE_ANNOTATION: HERE}), manager=MANAGER
    ),
    "make a pool in the place of another node's": lambda it: it.cluster.create(
        pool(f"red-{THERE}", "10.7.0.0/24"), manager=MANAGER
    ),
    "delete a pool": lambda it: it.cluster.delete(IPPool, f"blue-{HERE}", NAMESPACE),
    "list all pools": lambda it: it.cluster.list(IPPool, NAMESPACE),
    "take another node's Lease": lambda it: take_lease(it, f"blue-{THERE}", HERE),
    "take a Lease that is not a pool's of its own": lambda it: it.cluster.create(
        lease("kube-scheduler-x", HERE), manager=MANAGER
    ),
    "take its Lease in another's name": lambda it: take_lease(it, f"blue-{HERE}", THERE),
    "lead the controllers": lambda it: take_lease(it, LEADER, HERE),
    "list all reservations": lambda it: it.cluster.list(OverlappingRangeIPReservation, NAMESPACE),
    "override what is in force in a subnet": lambda it: it.cluster.apply(
        ClusterSubnet(metadata=place("subnet")), manager=MANAGER
    ),
    "label its Node": relabel_node,
    "delete its Node": lambda it: it.cluster.delete(Node, HERE),
    "delete a pod": lambda it: it.cluster.delete(Pod, f"podtide-agent-{HERE}", NAMESPACE),
    "see other networks": lambda it: it.cluster.list(NetworkAttachmentDefinition),
}

CONTROLLER_MAY_NOT: dict[str, Attempt] = {
    "label a Node": relabel_node,
    "delete a Node": lambda it: it.cluster.delete(Node, HERE),
    "delete a pod": lambda it: it.cluster.delete(Pod, "podtide-controller", NAMESPACE),
    "take a Lease that is not the leader's": lambda it: take_lease(it, f"blue-{HERE}", "me"),
    "make a Lease": lambda it: it.cluster.create(lease("mine", "me"), manager=MANAGER),
    "override what is in force in a subnet": lambda it: it.cluster.apply(
        ClusterSubnet(metadata=place("subnet")), manager=MANAGER
    ),
    "read Events": lambda it: it.cluster.list(Event, NAMESPACE),
}

ALLOCATOR_MAY_NOT: dict[str, Attempt] = {
    "list pods": lambda it: it.cluster.list(Pod),
    "see a Node": lambda it: it.cluster.get(Node, HERE),
    "see a NodeNetworkConfig": lambda it: it.cluster.get(NodeNetworkConfig, HERE, NAMESPACE),
}

UNBOUND_AGENT_MAY_NOT: dict[str, Attempt] = {
    "state a request": lambda it: request_for(it, HERE),
    "allocate from a pool that all share": lambda it: allocate_in(it, CLASSIC),
    "take a Lease": lambda it: take_lease(it, f"blue-{HERE}", HERE),
}


@pytest.mark.parametrize("sentence", AGENT_MAY)
async def test_an_agent_may(two_nodes: Installed, sentence: str) -> None:
    async with stage(two_nodes, "agent") as it:
        await AGENT_MAY[sentence](it)


@pytest.mark.parametrize(
    ("who", "sentence", "attempt"),
    [
        (who, sentence, attempt)
        for who, attempts in (
            ("agent", AGENT_MAY_NOT),
            ("unbound agent", UNBOUND_AGENT_MAY_NOT),
            ("controller", CONTROLLER_MAY_NOT),
            ("allocator", ALLOCATOR_MAY_NOT),
        )
        for sentence, attempt in attempts.items()
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_it_is_forbidden(two_nodes: Installed, who: str, sentence: str, attempt: Attempt) -> None:
    del sentence  # it is for the reader
    async with stage(two_nodes, who) as it:
        with pytest.raises(Forbidden):
            await attempt(it)


async def test_a_refusal_says_whose_it_is_and_who_asked(two_nodes: Installed) -> None:
    async with stage(two_nodes, "agent") as it:
        with pytest.raises(Forbidden, match="of its own node, and this agent is on node-a"):
            await request_for(it, THERE)
        with pytest.raises(Forbidden, match="of node node-b is changed by its own agent"):
            await allocate_in(it, f"blue-{THERE}")
