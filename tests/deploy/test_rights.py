"""Every program may do what it has to, and not a step more. By their own tokens, on a real API server."""

import pytest
from msgspec import structs

from deploy.installed import NAMESPACE, Installed
from deploy.two_nodes import (
    CLASSIC,
    HERE,
    MANAGER,
    RESERVED,
    THERE,
    Attempt,
    Stage,
    allocate_in,
    lease,
    place,
    pool,
    request_for,
    reservation,
    stage,
    take_lease,
)
from podtide.cluster.port import Forbidden, NotFound
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.event import Event
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    STATEMENT_ANNOTATION,
    WAITING_PODS_ANNOTATION,
)
from podtide.resources.namespace import Namespace
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

LEADER = "podtide-controller"


async def widen_own_pool(stage: Stage) -> None:
    mine = await stage.of(IPPool, f"blue-{HERE}")
    spec = structs.replace(mine.spec, range="10.4.0.0/16")
    await stage.cluster.replace(structs.replace(mine, spec=spec), manager=MANAGER)


def held_up(pool: IPPool) -> IPPool:
    return structs.replace(pool, metadata=structs.replace(pool.metadata, finalizers=["example.org/mine"]))


async def hold_up_shared_pool(stage: Stage) -> None:
    await stage.cluster.replace(held_up(await stage.of(IPPool, CLASSIC)), manager=MANAGER)


async def claim_pool(stage: Stage, name: str) -> None:
    there = await stage.of(IPPool, name)
    mine = structs.replace(there.metadata, annotations={NODE_ANNOTATION: HERE})
    await stage.cluster.replace(structs.replace(there, metadata=mine), manager=MANAGER)


async def write_status(stage: Stage) -> None:
    mine = await stage.of(NodeNetworkConfig, HERE)
    status = structs.replace(mine.status, assigned_ip_count=250)
    await stage.cluster.replace_status(structs.replace(mine, status=status), manager=MANAGER)


async def relabel_node(stage: Stage) -> None:
    node = await stage.of(Node, HERE)
    labelled = structs.replace(node.metadata, labels={"podtide.io/subnet": "another"})
    await stage.cluster.replace(structs.replace(node, metadata=labelled), manager=MANAGER)


async def reserve_and_release(stage: Stage) -> None:
    made = await stage.cluster.create(reservation("10.5.0.9", HERE), manager=MANAGER)
    await stage.cluster.get(OverlappingRangeIPReservation, "10.5.0.9", NAMESPACE)
    taken = structs.replace(made.spec, container_id="sandbox")
    await stage.cluster.replace(structs.replace(made, spec=taken), manager=MANAGER)
    await stage.cluster.delete(OverlappingRangeIPReservation, "10.5.0.9", NAMESPACE, uid=made.metadata.uid)


async def pass_on(stage: Stage, name: str, **changes: str) -> None:
    there = await stage.of(OverlappingRangeIPReservation, name)
    spec = structs.replace(there.spec, **changes)
    await stage.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)


async def claim_reservation(stage: Stage, name: str) -> None:
    there = await stage.of(OverlappingRangeIPReservation, name)
    mine = structs.replace(there.metadata, annotations={NODE_ANNOTATION: HERE})
    await stage.cluster.replace(structs.replace(there, metadata=mine), manager=MANAGER)


async def release_what_nobody_marked(stage: Stage) -> None:
    await stage.admin.create(reservation("10.5.0.8", ""), manager=MANAGER)
    await stage.cluster.delete(OverlappingRangeIPReservation, "10.5.0.8", NAMESPACE)


async def give_up_and_take_again(stage: Stage) -> None:
    await take_lease(stage, f"blue-{HERE}", "")
    await take_lease(stage, f"blue-{HERE}", HERE)


async def delete_lease(stage: Stage, item: Lease) -> None:
    """Make it as the admin, who takes it away where the program may not."""
    await stage.admin.create(item, manager=MANAGER)
    try:
        await stage.cluster.delete(Lease, item.metadata.name, NAMESPACE)
    except Forbidden:
        await stage.admin.delete(Lease, item.metadata.name, NAMESPACE)
        raise
    with pytest.raises(NotFound):
        await stage.of(Lease, item.metadata.name)


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
    "say how many pods wait": lambda it: request_for(it, HERE, **{WAITING_PODS_ANNOTATION: "3"}),
    "say what its request is from": lambda it: request_for(it, HERE, **{STATEMENT_ANNOTATION: "{}"}),
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
    "pass the reservation of its pod on to a new sandbox": lambda it: pass_on(
        it, RESERVED[HERE], container_id="newer"
    ),
    "pass a reservation of Whereabouts' on to a new sandbox": lambda it: pass_on(
        it, RESERVED[""], container_id="newer"
    ),
    "release a reservation of Whereabouts'": release_what_nobody_marked,
}

AGENT_MAY_NOT: dict[str, Attempt] = {
    "state another node's request": lambda it: request_for(it, THERE),
    "write its own status": write_status,
    "make a NodeNetworkConfig": lambda it: it.cluster.create(
        NodeNetworkConfig(metadata=place("node-c")), manager=MANAGER
    ),
    "delete its own NodeNetworkConfig": lambda it: it.cluster.delete(NodeNetworkConfig, HERE, NAMESPACE),
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
    "make a pool that says it is a slice of a network": lambda it: it.cluster.create(
        pool("10.7.0.0-24", "10.7.0.0/24", **{NETWORK_ANNOTATION: "blue"}), manager=MANAGER
    ),
    "make a pool that cannot be deleted": lambda it: it.cluster.create(
        held_up(pool("10.7.0.0-24", "10.7.0.0/24")), manager=MANAGER
    ),
    "hold a pool up that all share": hold_up_shared_pool,
    "delete a pool": lambda it: it.cluster.delete(IPPool, f"blue-{HERE}", NAMESPACE),
    "list all pools": lambda it: it.cluster.list(IPPool, NAMESPACE),
    "take another node's Lease": lambda it: take_lease(it, f"blue-{THERE}", HERE),
    "take a Lease that is not a pool's of its own": lambda it: it.cluster.create(
        lease("kube-scheduler-x", HERE), manager=MANAGER
    ),
    "take the Lease of a node whose name begins with its own": lambda it: it.cluster.create(
        lease(f"blue-{HERE}-x", HERE), manager=MANAGER
    ),
    "take the Lease that Whereabouts names after such a node": lambda it: it.cluster.create(
        lease(f"blue-{HERE}-x-10.4.1.0-24", HERE), manager=MANAGER
    ),
    "take a Lease that is called like its node and no pool": lambda it: it.cluster.create(
        lease(HERE, HERE), manager=MANAGER
    ),
    "take its Lease in another's name": lambda it: take_lease(it, f"blue-{HERE}", THERE),
    "lead the controllers": lambda it: take_lease(it, LEADER, HERE),
    "reserve an address without saying for which node": lambda it: it.cluster.create(
        reservation("10.5.0.9", ""), manager=MANAGER
    ),
    "reserve an address for another node": lambda it: it.cluster.create(
        reservation("10.5.0.9", THERE), manager=MANAGER
    ),
    "release another node's reservation": lambda it: it.cluster.delete(
        OverlappingRangeIPReservation, RESERVED[THERE], NAMESPACE
    ),
    "pass another node's reservation on": lambda it: pass_on(it, RESERVED[THERE], container_id="mine"),
    "claim another node's reservation": lambda it: claim_reservation(it, RESERVED[THERE]),
    "claim a reservation of Whereabouts'": lambda it: claim_reservation(it, RESERVED[""]),
    "give its reservation to another pod": lambda it: pass_on(it, RESERVED[HERE], podref="default/other"),
    "list all reservations": lambda it: it.cluster.list(OverlappingRangeIPReservation, NAMESPACE),
    "override what is in force in a subnet": lambda it: it.cluster.apply(
        ClusterSubnet(metadata=place("subnet")), manager=MANAGER
    ),
    "label its Node": relabel_node,
    "delete its Node": lambda it: it.cluster.delete(Node, HERE),
    "delete a pod": lambda it: it.cluster.delete(Pod, f"podtide-agent-{HERE}", NAMESPACE),
    "see other networks": lambda it: it.cluster.list(NetworkAttachmentDefinition),
}

CONTROLLER_MAY: dict[str, Attempt] = {
    "read who the cluster is": lambda it: it.cluster.get(Namespace, "kube-system"),
    "delete the Lease of a pool": lambda it: delete_lease(
        it, lease(f"red-{THERE}", THERE, **{NODE_ANNOTATION: THERE})
    ),
    "delete the Lease of a pool that is given up": lambda it: delete_lease(
        it, lease(f"red-{THERE}", "", **{NODE_ANNOTATION: THERE})
    ),
}

CONTROLLER_MAY_NOT: dict[str, Attempt] = {
    "read another namespace": lambda it: it.cluster.get(Namespace, "default"),
    "label a Node": relabel_node,
    "delete a Node": lambda it: it.cluster.delete(Node, HERE),
    "delete a pod": lambda it: it.cluster.delete(Pod, "podtide-controller", NAMESPACE),
    "take a Lease that is not the leader's": lambda it: take_lease(it, f"blue-{HERE}", "me"),
    "make a Lease": lambda it: it.cluster.create(lease("mine", "me"), manager=MANAGER),
    "delete the scheduler's Lease": lambda it: delete_lease(
        it, lease("kube-scheduler", "control-plane-1_0f3c")
    ),
    "delete the leader's Lease": lambda it: it.cluster.delete(Lease, LEADER, NAMESPACE),
    "delete a Lease that no agent marked, although nobody holds it": lambda it: delete_lease(
        it, lease(f"red-{THERE}", "")
    ),
    "delete the Lease of a pool that another than its node holds": lambda it: delete_lease(
        it, lease(f"red-{THERE}", "default/some-pod", **{NODE_ANNOTATION: THERE})
    ),
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
    "reserve an address": lambda it: it.cluster.create(reservation("10.5.0.9", HERE), manager=MANAGER),
    "release a reservation of Whereabouts'": lambda it: it.cluster.delete(
        OverlappingRangeIPReservation, RESERVED[""], NAMESPACE
    ),
}


@pytest.mark.parametrize("sentence", AGENT_MAY)
async def test_an_agent_may(two_nodes: Installed, sentence: str) -> None:
    async with stage(two_nodes, "agent") as it:
        await AGENT_MAY[sentence](it)


@pytest.mark.parametrize("sentence", CONTROLLER_MAY)
async def test_a_controller_may(two_nodes: Installed, sentence: str) -> None:
    async with stage(two_nodes, "controller") as it:
        await CONTROLLER_MAY[sentence](it)


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
        with pytest.raises(Forbidden, match="of node node-b is changed by its own agent"):
            await it.cluster.delete(OverlappingRangeIPReservation, RESERVED[THERE], NAMESPACE)
    async with stage(two_nodes, "controller") as it:
        with pytest.raises(Forbidden, match="podtide-controller is not one"):
            await it.cluster.delete(Lease, LEADER, NAMESPACE)
