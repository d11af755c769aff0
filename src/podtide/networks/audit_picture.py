"""What a cluster's objects say of its secondary networks, as the picture that `core.audit.networks` judges."""

from collections.abc import Iterable, Iterator

from podtide.core.audit.networks import NetworkPicture, PoolView, ReservationView, SliceView
from podtide.core.errors import InvalidInput
from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress, IPNetwork, parse_network
from podtide.networks.attachments import attached_networks
from podtide.networks.ownership import KnownNetworks, pool_range
from podtide.networks.pods import uids_of_living
from podtide.resources.ip_pool import IPAllocation, IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import address_at
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod


def draw_networks(
    attachments: Iterable[NetworkAttachmentDefinition],
    *,
    pools: Iterable[IPPool],
    reservations: Iterable[OverlappingRangeIPReservation],
    slice_pools: Iterable[NodeSlicePool] = (),
    pods: Iterable[Pod] | None = None,
) -> NetworkPicture:
    """The picture to audit. Objects of networks without a definition are left out, but for what their pools hold."""
    known = KnownNetworks(item.network for item in attached_networks(attachments))
    return NetworkPicture(
        pools=tuple(_pool_views(known, pools)),
        reservations=tuple(_reservation_views(known, reservations)),
        slices=tuple(_slice_views(known, slice_pools)),
        pods=None if pods is None else uids_of_living(pods),
    )


def held_addresses(pool: IPPool, network: IPNetwork) -> dict[IPAddress, Allocation]:
    """The holder of each address of a pool; keys that are not offsets are left out."""
    return {
        address: allocation_of(entry)
        for key, entry in pool.spec.allocations.items()
        if (address := address_at(network, key)) is not None
    }


def allocation_of(entry: IPAllocation) -> Allocation:
    """An entry of an IPPool as the core's type."""
    return Allocation(
        entry.id, entry.podref, entry.ifname, entry.pod_uid, tuple(entry.earlier), entry.configuration
    )


def holder_of(reservation: OverlappingRangeIPReservation) -> Allocation:
    """The holder of a reservation as the core's type."""
    spec = reservation.spec
    return Allocation(spec.container_id, spec.podref, spec.ifname, spec.pod_uid)


def reservation_for(holder: Allocation) -> OverlappingRangeIPReservationSpec:
    """The spec of a reservation for this holder."""
    return OverlappingRangeIPReservationSpec(
        podref=holder.podref, ifname=holder.ifname, container_id=holder.id, pod_uid=holder.pod_uid
    )


def _pool_views(known: KnownNetworks, pools: Iterable[IPPool]) -> Iterator[PoolView]:
    for pool in pools:
        network = pool_range(pool)
        if network is None:
            continue
        belonging = known.of_pool(pool)
        yield PoolView(
            pool=pool.metadata.name,
            network=belonging.network if belonging else "",
            range=network,
            holders=held_addresses(pool, network),
            guarded_as=belonging.network_name if belonging and belonging.guarded else None,
            node=pool.metadata.annotations.get(NODE_ANNOTATION, ""),
        )


def _reservation_views(
    known: KnownNetworks, reservations: Iterable[OverlappingRangeIPReservation]
) -> Iterator[ReservationView]:
    for reservation in reservations:
        found = known.of_reservation(reservation.metadata.name)
        if found is not None:
            network_name, address = found
            yield ReservationView(
                name=reservation.metadata.name,
                guarded_as=network_name,
                address=address,
                holder=holder_of(reservation),
            )


def _slice_views(known: KnownNetworks, slice_pools: Iterable[NodeSlicePool]) -> Iterator[SliceView]:
    for slice_pool in slice_pools:
        belonging = known.of_slice_pool(slice_pool.metadata.name)
        network = belonging.network if belonging else slice_pool.metadata.name
        for entry in slice_pool.status.allocations if slice_pool.status else ():
            try:
                slice_ = parse_network(entry.slice_range)
            except InvalidInput:
                continue
            if entry.node_name:
                yield SliceView(network=network, node=entry.node_name, slice=slice_)
