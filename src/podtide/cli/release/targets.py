"""What `podtide release` would free, and what speaks against it, by reads that are newer than what they judge."""

from collections.abc import Collection
from typing import NoReturn

from msgspec import Struct

from podtide.agent.pool.pods import shown_addresses
from podtide.cli.ip.address_state import AddressFinding, AddressState, is_address
from podtide.cluster.field_selector import field_is
from podtide.cluster.listing import get_if_there, list_all
from podtide.cluster.port import Cluster, ClusterError
from podtide.controller.repair.snapshot import PoolEntry, pod_seen
from podtide.core.errors import InvalidInput
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.manual_release import NodeOfAddress, ReleaseObjection, objections_to_release
from podtide.core.ranges import IPAddress
from podtide.networks.audit_picture import allocation_of, holder_of
from podtide.networks.ownership import pool_range
from podtide.networks.pods import addresses_shown, has_ended
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import (
    COMPONENT_LABEL,
    NAME_LABEL,
    NODE_ANNOTATION,
    NODE_GONE_ANNOTATION,
    PODTIDE,
)
from podtide.resources.names import address_at
from podtide.resources.node import Node
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodPhase

_IN_NODE_POOLS = {
    AddressState.PRIMARY,
    AddressState.IDLE,
    AddressState.HELD,
    AddressState.ON_POD,
    AddressState.RELEASING,
}
_HELD_IN_POOLS = {AddressState.ON_POD, AddressState.LEAKED, AddressState.QUARANTINED}
_AGENT_SOCKET = "/run/podtide/agent.sock"
_AGENTS = f"{NAME_LABEL}={PODTIDE},{COMPONENT_LABEL}=agent"


class NotForPeople(InvalidInput):
    """An address of a node's pool, which only the node's agent may give back."""


class AskItsAgent(NotForPeople):
    """An address of a node's pool that the node's agent may free when it is asked to."""

    def __init__(self, address: IPAddress, node: str) -> None:
        super().__init__(f"{address} is in the pool of node {node}")
        self.address = address
        self.node = node


class NetworkTarget(Struct, frozen=True, kw_only=True):
    """An address of a secondary network: its entry in a pool, its reservation, or both."""

    network: str
    holder: Allocation
    entry: PoolEntry | None
    reservation: OverlappingRangeIPReservation | None
    objections: tuple[ReleaseObjection, ...]
    shown_by: str = ""
    """The living pod that shows the address."""


def choose_finding(
    findings: tuple[AddressFinding, ...], address: IPAddress, network: str
) -> AddressFinding | None:
    """The one finding to release; None if nothing holds the address. Refused where that is not clear."""
    found = [each for each in findings if not network or each.network == network]
    if not found:
        raise InvalidInput(f"{address} is not in network {network}: see `podtide ip {address}`")
    held = [
        each
        for each in found
        if (each.pool and each.state in _HELD_IN_POOLS)
        or each.reservation
        or (each.subnet and each.state in {*_IN_NODE_POOLS, AddressState.QUARANTINED})
    ]
    for each in held:
        if each.subnet and each.state in _IN_NODE_POOLS:
            _refuse_of_node_pool(address, each)
    if any(each.state in {AddressState.HOST, AddressState.ON_POD} and not each.network for each in found):
        raise InvalidInput(f"{address} is not podtide's to release: {found[0].words}")
    if not held and any(each.state is AddressState.UNKNOWN for each in found):
        raise InvalidInput(f"{address}: {found[0].words}")
    if len(held) > 1:
        places = ", ".join(sorted(each.network for each in held))
        raise InvalidInput(f"{address} is held in several networks ({places}): say which with --network")
    return held[0] if held else None


def _refuse_of_node_pool(address: IPAddress, finding: AddressFinding) -> NoReturn:
    node = finding.node
    if finding.state is AddressState.PRIMARY:
        why = f"it is the primary address of node {node}, and free when the node is removed"
    elif finding.state is AddressState.RELEASING:
        why = f"node {node} gives it back already; if that lasts, see `podtide why node/{node}`"
    elif finding.state is AddressState.ON_POD:
        why = f"pod {finding.pod} has it, and node {node}'s agent frees it when the pod is deleted"
    else:
        raise AskItsAgent(address, node)
    raise NotForPeople(f"{address} is not to be released from here: {why}")


async def how_to_ask(cluster: Cluster, refused: AskItsAgent, kubectl: str) -> str:
    """The command that asks the node's agent: in its Pod, or on the node where no such Pod is found."""
    release = f"podtide release {refused.address} --agent-socket {_AGENT_SOCKET}"
    fields = field_is("spec.nodeName", refused.node)
    try:
        pods = list((await cluster.list(Pod, labels=_AGENTS, fields=fields)).items)
    except ClusterError:
        pods = []
    running = next((pod.key for pod in pods if pod.status.phase is PodPhase.RUNNING), None)
    if running is None:
        return f"run this on that node, as root: {release}"
    return (
        f"run: {kubectl} exec --namespace {running.namespace} {running.name} --container agent -- {release}"
    )


async def read_target(
    cluster: Cluster, finding: AddressFinding, address: IPAddress, namespace: str
) -> NetworkTarget | None:
    """The target as it is now; None if it is held no more.

    Pods and Nodes are read after the entry, so that none that came with it is overlooked.
    """
    pool = await get_if_there(cluster, IPPool, finding.pool, namespace) if finding.pool else None
    reservation = (
        await get_if_there(cluster, OverlappingRangeIPReservation, finding.reservation, namespace)
        if finding.reservation
        else None
    )
    entry = _entry(pool, address) if pool else None
    if entry is None and reservation is None:
        return None
    holder = entry.holder if entry else holder_of(reservation) if reservation else None
    assert holder is not None  # one of the two is there
    if reservation is not None and reservation.spec.podref != holder.podref:
        reservation = None  # it is another pod's
    nodes = {node.metadata.name for node in await list_all(cluster, Node)}
    pods = await list_all(cluster, Pod)
    shown_by = next((str(pod.key) for pod in pods if _shows(pod, address)), "")
    pod = next((each for each in pods if str(each.key) == holder.podref), None)
    return NetworkTarget(
        network=finding.network,
        holder=holder,
        entry=entry,
        reservation=reservation,
        objections=objections_to_release(
            holder,
            pod_seen(pod, nodes.__contains__) if pod else None,
            address if entry else None,
            is_shown=bool(shown_by),
            node=_node_of(pool, reservation, nodes),
        ),
        shown_by=shown_by,
    )


def _node_of(
    pool: IPPool | None, reservation: OverlappingRangeIPReservation | None, nodes: Collection[str]
) -> NodeOfAddress:
    """The node whose pool it is, or whose agent made the reservation."""
    marks = [each.metadata.annotations for each in (pool, reservation) if each is not None]
    name = next((each[NODE_ANNOTATION] for each in marks if NODE_ANNOTATION in each), "")
    if not name:
        return NodeOfAddress.UNKNOWN
    is_marked = any(NODE_GONE_ANNOTATION in each for each in marks)
    return NodeOfAddress.DELETED if is_marked or name not in nodes else NodeOfAddress.THERE


def _entry(pool: IPPool, address: IPAddress) -> PoolEntry | None:
    network = pool_range(pool)
    if network is None:
        return None
    return next(
        (
            PoolEntry(pool.metadata.name, key, allocation_of(each))
            for key, each in pool.spec.allocations.items()
            if address_at(network, key) == address
        ),
        None,
    )


def _shows(pod: Pod, address: IPAddress) -> bool:
    """Whether a living pod shows the address, by its status or by the network status that Multus writes."""
    if has_ended(pod):
        return False
    return address in (addresses_shown(pod) or ()) or any(
        is_address(ip, address) for ip in shown_addresses(pod)
    )
