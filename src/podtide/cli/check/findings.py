"""What `podtide check` finds in what it read: the invariants of `core.audit.invariants`, applied to a live cluster.

The objects of a cluster show less than its programs know. The state of an agent's pool is not among them, so a node's
pool is derived from its NodeNetworkConfig (what it holds, what it gives back) and its pods (what is in use). The
allocator's records are asked of the allocator, if it can be reached; else the NodeNetworkConfigs are taken as they are,
and what cannot be checked then is listed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podtide.agent.pool.pods import shown_addresses
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.subnets import Subnet
from podtide.cli.observed.node import ObservedNode
from podtide.core.audit.invariants import (
    Grant,
    Ledger,
    NodeView,
    Picture,
    PodView,
    Violation,
    audit,
    audit_change,
)
from podtide.core.audit.networks import NetworkPicture, audit_settled_networks
from podtide.core.pool.states import State
from podtide.resources.foreign_config import has_foreign_containers, own_ids


class AllocatorRecords(Struct, frozen=True, kw_only=True):
    """What an allocator has recorded, as far as the token may see it."""

    containers: tuple[AllocatedContainer, ...]
    subnets: tuple[Subnet, ...]
    """Those that did not change while the containers were read: for the others the counts prove nothing."""
    moving: tuple[str, ...] = ()
    """The others, by name."""
    broken: tuple[Violation, ...] = ()
    """The violations that the allocator's own audit of its database found."""


class CheckedObjects(Struct, frozen=True):
    """One read of a live cluster."""

    nodes: tuple[ObservedNode, ...]
    records: AllocatorRecords | None
    networks: NetworkPicture | None = NetworkPicture()
    """The secondary networks; None if the credential may not read them."""


class CheckFindings(Struct, frozen=True, kw_only=True):
    """What is broken, what was checked, and what could not be."""

    violations: tuple[Violation, ...]
    not_checked: tuple[str, ...]
    nodes: int
    pods: int
    """Those with an address."""
    addresses: int
    """Secondary addresses that nodes hold."""
    networks: int = 0
    """Secondary networks that have pools."""
    network_addresses: int = 0
    """Addresses that pods hold in them."""


def find(objects: CheckedObjects) -> CheckFindings:
    """Everything that one read shows."""
    # A node without a container has no pool: its pods have their addresses from another IPAM.
    views = tuple(_node_view(node) for node in objects.nodes if node.containers)
    pods = tuple(_pod_views(objects.nodes))
    shown = Picture(grants=tuple(_shown_grants(objects.nodes)), nodes=views, pods=pods)
    violations = set(audit(shown))
    if objects.records:
        violations |= set(_compare_with_records(shown, objects.nodes, objects.records))
    pools = objects.networks.pools if objects.networks else ()
    if objects.networks:
        violations |= set(audit_settled_networks(objects.networks))
    return CheckFindings(
        violations=tuple(sorted(violations)),
        not_checked=tuple(_not_checked(objects)),
        nodes=len(objects.nodes),
        pods=len(pods),
        addresses=sum(node.held for node in objects.nodes),
        networks=len({pool.network or pool.pool for pool in pools}),
        network_addresses=sum(len(pool.holders) for pool in pools),
    )


def confirmed(first: CheckFindings, second: CheckFindings) -> CheckFindings:
    """The second findings, with only those violations that the first have too.

    A cluster changes while it is read, so that two parts that were read at different times may not match. What is
    really broken is still so at the second read; its numbers may have changed.
    """
    before = {(violation.invariant, violation.subject) for violation in first.violations}
    lasting = tuple(
        violation for violation in second.violations if (violation.invariant, violation.subject) in before
    )
    return replace(second, violations=lasting)


def _node_view(node: ObservedNode) -> NodeView:
    in_use = node.addresses_in_use
    states = {
        entry.ip: (
            State.PENDING_RELEASE
            if entry.name in node.named
            else State.ASSIGNED
            if entry.ip in in_use
            else State.AVAILABLE
        )
        for container in node.containers
        for entry in container.ip_assignments
    }
    return NodeView(node.name, states, node.named)


def _pod_views(nodes: Iterable[ObservedNode]) -> Iterator[PodView]:
    for node in nodes:
        for pod in node.served:
            yield PodView(str(pod.key), node.name, shown_addresses(pod))


def _shown_grants(nodes: Iterable[ObservedNode]) -> Iterator[Grant]:
    """What the NodeNetworkConfigs say was granted."""
    for node in nodes:
        for container in node.containers:
            addresses = {entry.name: entry.ip for entry in container.ip_assignments}
            primary = container.primary_ip or container.primary_ipv6
            yield Grant(container.id, node.name, container.subnet_name, primary, addresses)


def _compare_with_records(
    shown: Picture, nodes: tuple[ObservedNode, ...], records: AllocatorRecords
) -> Iterator[Violation]:
    yield from records.broken
    # What another program serves has its ids and names there, and podtide's at the allocator.
    foreign = {node.name for node in nodes if node.config and has_foreign_containers(node.config)}
    ours = {id_ for node in nodes if node.config for id_ in own_ids(node.config).values()}
    kept = tuple(_grant(container) for container in records.containers if container.id in ours)
    as_kept = Picture(grants=kept, nodes=shown.nodes, pods=shown.pods)
    yield from audit(as_kept)
    by_name = tuple(grant for grant in shown.grants if grant.node not in foreign)
    yield from audit_change(replace(shown, grants=by_name), as_kept)
    yield from _counts(records)
    yield from _left_behind(nodes, ours, records.containers)


def _counts(records: AllocatorRecords) -> Iterator[Violation]:
    """Whether what containers hold adds up, network by network: two networks may use the same addresses."""
    networks: dict[str, list[Subnet]] = defaultdict(list)
    for subnet in records.subnets:
        networks[subnet.network].append(subnet)
    for network, subnets in networks.items():
        held = [_grant(container) for container in records.containers if container.network == network]
        whole = [subnet for subnet in subnets if _sees_all_of(subnet, records)]
        yield from audit(Picture(ledgers=tuple(_ledger(s, held) for s in whole), grants=tuple(held)))


def _ledger(subnet: Subnet, held: Iterable[Grant]) -> Ledger:
    return subnet.ledger(sum(1 + len(grant.addresses) for grant in held if grant.subnet == subnet.name))


def _left_behind(
    nodes: tuple[ObservedNode, ...], ours: set[str], containers: tuple[AllocatedContainer, ...]
) -> Iterator[Violation]:
    """Containers of this cluster whose node does not exist."""
    names = {node.name for node in nodes}
    clusters = {container.cluster for container in containers if container.id in ours}
    for container in containers:
        if container.cluster in clusters and container.node not in names:
            held = 1 + len(container.addresses)
            yield Violation(
                6,
                container.id,
                f"container {container.id} holds {held} addresses for node {container.node}, which is not there",
            )


def _grant(container: AllocatedContainer) -> Grant:
    addresses = {address.name: address.ip for address in container.addresses}
    return Grant(container.id, container.node, container.subnet, container.primary, addresses)


def _sees_all_of(subnet: Subnet, records: AllocatorRecords) -> bool:
    """Whether all containers of the subnet are visible: a cluster's own token shows only its own."""
    visible = sum(
        (container.network, container.subnet) == (subnet.network, subnet.name)
        for container in records.containers
    )
    return visible == subnet.containers


def _not_checked(objects: CheckedObjects) -> Iterator[str]:
    records = objects.records
    if objects.networks is None:
        yield "secondary networks: the credential may not see their objects"
    yield "what agents keep to themselves: their pools are taken from NodeNetworkConfigs and pods"
    if records is None:
        yield "whether subnets' counts add up and nodes hold what was granted: name the allocator (--allocator or --database)"
        return
    for name in records.moving:
        yield f"the counts of subnet {name}: they changed while they were read"
    for subnet in records.subnets:
        if not _sees_all_of(subnet, records):
            yield f"the counts of subnet {subnet.name}: other clusters use it too, and the token does not show theirs"
