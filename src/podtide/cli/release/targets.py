"""What `podtide release` would free, and what speaks against it, by reads that are newer than what they judge."""

from msgspec import Struct

from podtide.agent.pool.pods import shown_addresses
from podtide.cli.ip.address_state import AddressFinding, AddressState, is_address
from podtide.cluster.listing import get_if_there, list_all
from podtide.cluster.port import Cluster
from podtide.controller.repair.snapshot import PoolEntry, pod_seen
from podtide.core.errors import InvalidInput
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.manual_release import ReleaseObjection, objections_to_release
from podtide.core.ranges import IPAddress
from podtide.networks.audit_picture import allocation_of, holder_of
from podtide.networks.ownership import pool_range
from podtide.networks.pods import addresses_shown, has_ended
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_GONE_ANNOTATION
from podtide.resources.names import address_at
from podtide.resources.node import Node
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

_IN_NODE_POOLS = {
    AddressState.PRIMARY,
    AddressState.IDLE,
    AddressState.HELD,
    AddressState.ON_POD,
    AddressState.RELEASING,
}
_HELD_IN_POOLS = {AddressState.ON_POD, AddressState.LEAKED, AddressState.QUARANTINED}
_SHOW_POOL = (
    'curl -s --unix-socket /run/podtide/agent.sock -d \'{"IPConfigStateFilter":["Assigned"]}\' '
    "http://agent/debug/ipaddresses"
)


class NotForPeople(InvalidInput):
    """An address of a node's pool, which only the node's agent may give back."""


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
            raise NotForPeople(f"{address} is not to be released from here: {_by_its_agent(each)}")
    if any(each.state in {AddressState.HOST, AddressState.ON_POD} and not each.network for each in found):
        raise InvalidInput(f"{address} is not podtide's to release: {found[0].words}")
    if not held and any(each.state is AddressState.UNKNOWN for each in found):
        raise InvalidInput(f"{address}: {found[0].words}")
    if len(held) > 1:
        places = ", ".join(sorted(each.network for each in held))
        raise InvalidInput(f"{address} is held in several networks ({places}): say which with --network")
    return held[0] if held else None


def _by_its_agent(finding: AddressFinding) -> str:
    node = finding.node
    if finding.state is AddressState.ON_POD:
        return f"pod {finding.pod} has it, and node {node}'s agent frees it when the pod is deleted"
    if finding.state is AddressState.PRIMARY:
        return f"it is the primary address of node {node}, and free when the node is removed"
    if finding.state is AddressState.RELEASING:
        return f"node {node} gives it back already; if that lasts, see `podtide why node/{node}`"
    return (
        f"it is in the pool of node {node}, whose agent alone gives addresses back, as its request falls; to see for which pod "
        f"the agent has it, run this on the node as root: {_SHOW_POOL}"
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
            is_in_quarantine=pool is not None and NODE_GONE_ANNOTATION in pool.metadata.annotations,
        ),
        shown_by=shown_by,
    )


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
