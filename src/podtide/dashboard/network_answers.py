"""Secondary networks: their slices, pools, reservations and leaks, read when a person asks.

The objects are few (a handful for each node), but not watched by the page: they are listed, and the answer is kept for a few
seconds. Which network an object belongs to, and what is a leak, is decided where `podtide check` decides it.
"""

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from podtide.cluster.listing import list_if_known, list_kept
from podtide.cluster.port import Cluster, ClusterError
from podtide.core.audit.networks import (
    NetworkPicture,
    PoolView,
    ReservationView,
    SliceView,
    audit_settled_networks,
)
from podtide.dashboard.answers import (
    NetworkAnswer,
    NetworkFigures,
    NetworkNode,
    NetworkReservation,
    NetworksAnswer,
    away,
    not_there,
)
from podtide.dashboard.page_state import PageState
from podtide.dashboard.pod_finder import MOST_PODS
from podtide.networks.attachments import AttachedNetwork, Unreadable, read_attachment
from podtide.networks.audit_picture import draw_networks
from podtide.networks.network import Network
from podtide.networks.ownership import KnownNetworks
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock

_KEPT_SECONDS = 5.0
_MOST_RESERVATIONS = 1_000
_KEEPS_BACK = 2
"""Of each slice, the first and the last address."""


class _NetworkObjects(Struct, frozen=True):
    networks: dict[str, Network]
    messages: dict[str, str]
    """By definition, why it cannot be read."""
    picture: NetworkPicture
    slice_totals: dict[str, int | None]
    complaints: dict[str, str]
    """By network, what its NodeSlicePools' conditions say is wrong."""


class NetworkAnswers:
    """Answers about secondary networks."""

    def __init__(self, state: PageState, cluster: Cluster, namespace: str, clock: Clock) -> None:
        """`namespace` is that of their pools."""
        self._state = state
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._read_at = 0.0
        self._objects: _NetworkObjects | None = None
        self._reading = asyncio.Lock()

    async def all(self) -> NetworksAnswer:
        """Every network, by name."""
        objects = await self._read()
        lines = [self._line(objects, network) for _, network in sorted(objects.networks.items())]
        unreadable = (
            NetworkFigures(
                name=name,
                ranges=(),
                slice_size=None,
                slices=None,
                slices_used=0,
                nodes=0,
                allocated=0,
                reservations=0,
                leaks=None,
                message=f"its NetworkAttachmentDefinition is invalid: {words}",
            )
            for name, words in sorted(objects.messages.items())
        )
        return NetworksAnswer(networks=(*lines, *unreadable))

    async def one(self, name: str) -> NetworkAnswer:
        """One network, with its nodes."""
        objects = await self._read()
        network = objects.networks.get(name)
        if network is None:
            raise not_there(f"there is no secondary network {name[:80]!r} in this cluster (any more)")
        part = _part(objects.picture, network)
        nodes_of = {
            (address, holder.podref): pool.node
            for pool in part.pools
            for address, holder in pool.holders.items()
        }
        return NetworkAnswer(
            name=name,
            nodes=tuple(_network_nodes(part)),
            reservations=tuple(
                NetworkReservation(
                    address=str(each.address),
                    pod=each.holder.podref,
                    node=nodes_of.get((each.address, each.holder.podref)) or None,
                    leaving=(each.address, each.holder.podref) not in nodes_of,
                )
                for each in part.reservations[:_MOST_RESERVATIONS]
            ),
            leaks=tuple(each.words for each in audit_settled_networks(part)),
        )

    def _line(self, objects: _NetworkObjects, network: Network) -> NetworkFigures:
        part = _part(objects.picture, network)
        sizes = [each.slice_size for each in network.ranges if each.slice_size is not None]
        return NetworkFigures(
            name=network.key,
            ranges=tuple(str(each.addresses.network) for each in network.ranges),
            slice_size=sizes[0] if sizes else None,
            slices=objects.slice_totals.get(network.key),
            slices_used=len(part.slices),
            nodes=len({each.node for each in part.slices} | {each.node for each in part.pools if each.node}),
            allocated=sum(len(each.holders) for each in part.pools),
            reservations=len(part.reservations),
            leaks=len(audit_settled_networks(part)) if part.pods is not None else None,
            message=objects.complaints.get(network.key, ""),
        )

    async def _read(self) -> _NetworkObjects:
        async with self._reading:
            now = self._clock.monotonic()
            if self._objects is None or now - self._read_at > _KEPT_SECONDS:
                try:
                    self._objects = await self._list()
                except ClusterError as error:
                    raise away(f"secondary networks could not be read: {error}") from error
                self._read_at = now
            return self._objects

    async def _list(self) -> _NetworkObjects:
        attachments = await list_if_known(self._cluster, NetworkAttachmentDefinition)
        found = [read_attachment(each) for each in attachments]
        networks = {each.network.key: each.network for each in found if isinstance(each, AttachedNetwork)}
        messages = {str(each.attachment): each.words for each in found if isinstance(each, Unreadable)}
        if not networks:
            return _NetworkObjects({}, messages, NetworkPicture(), {}, {})
        pools = await list_if_known(self._cluster, IPPool, self._namespace)
        reservations = await list_if_known(self._cluster, OverlappingRangeIPReservation, self._namespace)
        slice_pools = await list_if_known(self._cluster, NodeSlicePool, self._namespace)
        pods = None
        if self._state.stated_pods <= MOST_PODS:
            pods = await list_kept(self._cluster, Pod, keep=lambda pod: pod)
        picture = draw_networks(
            attachments, pools=pools, reservations=reservations, slice_pools=slice_pools, pods=pods
        )
        known = KnownNetworks(networks.values())
        return _NetworkObjects(
            networks, messages, picture, _totals(known, slice_pools), _complaints(known, slice_pools)
        )


def _part(picture: NetworkPicture, network: Network) -> NetworkPicture:
    """What of the picture is this network's."""
    names = {each.network_name for each in network.ranges}

    def is_its_own(reservation: ReservationView) -> bool:
        return reservation.guarded_as in names and any(
            reservation.address in each.addresses.network for each in network.ranges
        )

    return NetworkPicture(
        pools=tuple(each for each in picture.pools if each.network == network.key),
        reservations=tuple(filter(is_its_own, picture.reservations)),
        slices=tuple(each for each in picture.slices if each.network == network.key),
        pods=picture.pods,
    )


def _network_nodes(part: NetworkPicture) -> Iterable[NetworkNode]:
    """Slices with their pools, pools whose slice is not listed, and pools that nodes share."""
    by_slice: dict[tuple[str, str], PoolView] = {(each.node, str(each.range)): each for each in part.pools}
    for item in sorted(part.slices, key=lambda each: (each.node, str(each.slice))):
        pool = by_slice.pop((item.node, str(item.slice)), None)
        yield _network_node(item, pool)
    for pool in by_slice.values():
        message = "its slice is not listed for the node" if pool.node else "shared by all nodes"
        yield NetworkNode(
            node=pool.node,
            slice=str(pool.range),
            pool=pool.pool,
            capacity=max(0, pool.range.num_addresses - _KEEPS_BACK),
            allocated=len(pool.holders),
            message=message,
        )


def _network_node(item: SliceView, pool: PoolView | None) -> NetworkNode:
    return NetworkNode(
        node=item.node,
        slice=str(item.slice),
        pool=pool.pool if pool else "",
        capacity=max(0, item.slice.num_addresses - _KEEPS_BACK),
        allocated=len(pool.holders) if pool else 0,
        message="" if pool else "it has no pool yet",
    )


def _totals(known: KnownNetworks, slice_pools: Iterable[NodeSlicePool]) -> dict[str, int | None]:
    totals: dict[str, int | None] = {}
    for each in slice_pools:
        belonging = known.of_slice_pool(each.metadata.name)
        if belonging is not None and each.status is not None and each.status.total is not None:
            totals[belonging.network] = (totals.get(belonging.network) or 0) + each.status.total
    return totals


def _complaints(known: KnownNetworks, slice_pools: Iterable[NodeSlicePool]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in slice_pools:
        belonging = known.of_slice_pool(each.metadata.name)
        for condition in each.status.conditions if each.status and belonging else ():
            if condition.status == "False" and belonging is not None:
                found.setdefault(belonging.network, condition.message)
    return found
