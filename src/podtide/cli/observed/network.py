"""Secondary networks as the cluster's objects show them: their ranges, slices, pools, reservations and leaks.

`podtide ip`, `node`, `network`, `top` and `release` read networks this way, so that no two of them count differently.
What counts as leaked is decided by `core.networks.leaks`, as the controller's repair does, but from one read alone: the
controller waits and reads again before it frees anything.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from podtide.cluster.listing import list_if_known
from podtide.cluster.port import Cluster, Forbidden
from podtide.controller.repair.snapshot import pod_seen
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import PodSeen, why_orphaned
from podtide.core.networks.slice_room import pods_of_slice
from podtide.core.ranges import AddressRange, IPNetwork
from podtide.core.subnet.layout import MOST_ADDRESSES
from podtide.networks.attachments import AttachedNetwork, attached_networks
from podtide.networks.audit_picture import held_addresses, holder_of
from podtide.networks.confirmation import is_inert
from podtide.networks.ownership import KnownNetworks, pool_range
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION, NODE_GONE_ANNOTATION
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

UNDEFINED = ""
"""The key under which pools and reservations stand whose network no definition tells."""


class NetworkObjects(Struct, frozen=True, kw_only=True):
    """One read of all objects of secondary networks."""

    attachments: tuple[NetworkAttachmentDefinition, ...] = ()
    reservations: tuple[OverlappingRangeIPReservation, ...] = ()
    pools: tuple[IPPool, ...] = ()
    slice_pools: tuple[NodeSlicePool, ...] = ()


class ObservedPool(Struct, frozen=True, kw_only=True):
    """An IPPool: a node's slice, or a range that all nodes share."""

    name: str
    range: str
    node: str
    """Whose slice it is; "" for a pool that all nodes share."""
    capacity: int
    """How many addresses pods could have of it, by the definitions there are."""
    holders: dict[str, Allocation]
    """Who holds each address."""
    node_gone_since: str = ""
    """When its Node was found to be deleted: its slice is in quarantine from then on."""
    is_inert: bool = False
    """Whether it may not be used yet, because its slice is not confirmed."""


class ObservedReservation(Struct, frozen=True, kw_only=True):
    """An OverlappingRangeIPReservation."""

    name: str
    address: str
    podref: str
    since: str
    """When it was made, RFC 3339."""


class ObservedLeak(Struct, frozen=True, kw_only=True):
    """An address that is held or reserved for a pod that does not seem to have it any more."""

    address: str
    podref: str
    reason: str
    pool: str = ""
    reservation: str = ""


class ObservedRange(Struct, frozen=True, kw_only=True):
    """One range of a network, as its definitions state it."""

    cidr: str
    slice_prefix: int | None
    """The prefix length of a node's slice; None where all nodes share one pool."""
    slices: dict[str, str]
    """The slice of each node that has one."""
    total: int | None
    """How many slices there are, counted up to 2^53; None where it is not cut."""
    nodes_without: tuple[str, ...] = ()
    """Nodes that have no slice of it."""


class ObservedNetwork(Struct, frozen=True, kw_only=True):
    """One secondary network."""

    name: str
    """Its key: `network_name`, or of an unnamed network its range; "" for what no definition tells."""
    definitions: tuple[str, ...]
    """Its NetworkAttachmentDefinitions, as `namespace/name`."""
    is_guarded: bool
    """Whether its addresses are reserved across networks."""
    ranges: tuple[ObservedRange, ...]
    pools: tuple[ObservedPool, ...]
    reservations: tuple[ObservedReservation, ...]
    leaks: tuple[ObservedLeak, ...]

    @property
    def capacity(self) -> int:
        """How many addresses pods could have of the pools there are."""
        return sum(pool.capacity for pool in self.pools)

    @property
    def held(self) -> int:
        """How many addresses pods hold."""
        return sum(len(pool.holders) for pool in self.pools)

    @property
    def quarantined(self) -> int:
        """How many addresses are held in slices whose Node is deleted."""
        return sum(len(pool.holders) for pool in self.pools if pool.node_gone_since)

    @property
    def owed(self) -> int:
        """How many slices nodes lack."""
        return sum(len(each.nodes_without) for each in self.ranges)


async def read_network_objects(cluster: Cluster, namespace: str) -> NetworkObjects | None:
    """The objects of secondary networks; None if the credential may not read them.

    Reservations are read before pools: they are made before, and removed after, what they are for.
    """
    try:
        return NetworkObjects(
            attachments=tuple(await list_if_known(cluster, NetworkAttachmentDefinition)),
            reservations=tuple(await list_if_known(cluster, OverlappingRangeIPReservation, namespace)),
            pools=tuple(await list_if_known(cluster, IPPool, namespace)),
            slice_pools=tuple(await list_if_known(cluster, NodeSlicePool, namespace)),
        )
    except Forbidden:
        return None


def observe_networks(
    objects: NetworkObjects, pods: Iterable[Pod], nodes: Iterable[Node]
) -> tuple[ObservedNetwork, ...]:
    """All networks by name; what no definition tells of comes last."""
    attached = list(attached_networks(objects.attachments))
    known = KnownNetworks(item.network for item in attached)
    names = frozenset(node.metadata.name for node in nodes)
    seen = {str(pod.key): pod_seen(pod, names.__contains__) for pod in pods}

    by_network: dict[str, list[AttachedNetwork]] = defaultdict(list)
    for item in attached:
        by_network[item.network.key].append(item)
    pools: dict[str, list[tuple[IPPool, IPNetwork]]] = defaultdict(list)
    for pool in objects.pools:
        belonging, network = known.of_pool(pool), pool_range(pool)
        if network is not None:
            pools[belonging.network if belonging else UNDEFINED].append((pool, network))
    reservations = _reservations(objects, known, by_network)
    keys = sorted({*by_network, *pools, *reservations} - {UNDEFINED})
    if pools.get(UNDEFINED) or reservations.get(UNDEFINED):
        keys.append(UNDEFINED)
    slices = _slices(objects, known)
    return tuple(
        _network(
            key,
            by_network.get(key, []),
            pools.get(key, []),
            reservations.get(key, []),
            slices.get(key, {}),
            names,
            seen,
        )
        for key in keys
    )


def _reservations(
    objects: NetworkObjects, known: KnownNetworks, by_network: Mapping[str, list[AttachedNetwork]]
) -> dict[str, list[tuple[OverlappingRangeIPReservation, str]]]:
    """The reservations with their addresses, by network; of several networks of one name, the first that has it."""
    found: dict[str, list[tuple[OverlappingRangeIPReservation, str]]] = defaultdict(list)
    for item in objects.reservations:
        place = known.of_reservation(item.metadata.name)
        key = UNDEFINED
        if place is not None:
            network_name, address = place
            key = next(
                each
                for each, attached in sorted(by_network.items())
                for one in attached
                for range_ in one.network.ranges
                if range_.network_name == network_name and address in range_.addresses.network
            )
        found[key].append((item, str(place[1]) if place else ""))
    return found


def _slices(objects: NetworkObjects, known: KnownNetworks) -> dict[str, dict[str, dict[str, str]]]:
    """For each network and range, the slice of each node."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for slice_pool in objects.slice_pools:
        belonging = known.of_slice_pool(slice_pool.metadata.name)
        network = pool_range(slice_pool)
        if belonging is not None and network is not None:
            found[belonging.network][str(network)] = {
                entry.node_name: entry.slice_range
                for entry in (slice_pool.status.allocations if slice_pool.status else ())
                if entry.node_name
            }
    return found


def _network(  # noqa: PLR0913, PLR0917 - what was found of one network
    key: str,
    attached: list[AttachedNetwork],
    pools: list[tuple[IPPool, IPNetwork]],
    reservations: list[tuple[OverlappingRangeIPReservation, str]],
    slices: Mapping[str, dict[str, str]],
    nodes: frozenset[str],
    seen: Mapping[str, PodSeen],
) -> ObservedNetwork:
    ranges = [each.addresses for item in attached for each in item.network.ranges]
    return ObservedNetwork(
        name=key,
        definitions=tuple(sorted(str(item.attachment) for item in attached)),
        is_guarded=any(item.network.guarded for item in attached),
        ranges=tuple(_ranges(attached, slices, nodes)),
        pools=tuple(sorted((_pool(*each, ranges) for each in pools), key=lambda pool: pool.name)),
        reservations=tuple(
            ObservedReservation(
                name=item.metadata.name,
                address=address,
                podref=item.spec.podref,
                since=item.metadata.creation_timestamp or "",
            )
            for item, address in reservations
        ),
        leaks=tuple(_leaks(pools, reservations, seen)),
    )


def _ranges(
    attached: list[AttachedNetwork], slices: Mapping[str, dict[str, str]], nodes: frozenset[str]
) -> Iterator[ObservedRange]:
    """Each range once, although several definitions may have it."""
    once = {str(each.addresses.network): each for item in attached for each in item.network.ranges}
    for cidr, each in once.items():
        assigned = slices.get(cidr, {}) if each.slicing else {}
        yield ObservedRange(
            cidr=cidr,
            slice_prefix=each.slice_size,
            slices=assigned,
            total=min(each.slicing.count, MOST_ADDRESSES) if each.slicing else None,
            nodes_without=tuple(sorted(nodes - assigned.keys())) if each.slicing else (),
        )


def _pool(pool: IPPool, network: IPNetwork, ranges: list[AddressRange]) -> ObservedPool:
    marks = pool.metadata.annotations
    return ObservedPool(
        name=pool.metadata.name,
        range=str(network),
        node=marks.get(NODE_ANNOTATION, ""),
        capacity=pods_of_slice(network, ranges, pool.spec.allocations),
        holders={str(address): holder for address, holder in held_addresses(pool, network).items()},
        node_gone_since=marks.get(NODE_GONE_ANNOTATION, ""),
        is_inert=is_inert(pool),
    )


def _leaks(
    pools: Iterable[tuple[IPPool, IPNetwork]],
    reservations: Iterable[tuple[OverlappingRangeIPReservation, str]],
    seen: Mapping[str, PodSeen],
) -> Iterator[ObservedLeak]:
    for pool, network in pools:
        for address, holder in held_addresses(pool, network).items():
            if reason := why_orphaned(holder, seen.get(holder.podref), address):
                yield ObservedLeak(
                    address=str(address), podref=holder.podref, reason=reason, pool=pool.metadata.name
                )
    for item, reserved in reservations:
        holder = holder_of(item)
        if reason := why_orphaned(holder, seen.get(holder.podref)):
            yield ObservedLeak(
                address=reserved, podref=holder.podref, reason=reason, reservation=item.metadata.name
            )
