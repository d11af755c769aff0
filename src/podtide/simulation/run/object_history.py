"""The history of an address, or of a slice, in the objects of secondary networks: what each write changed."""

from collections.abc import Iterator

from podtide.core.ranges import IPNetwork, overlap
from podtide.networks.audit_picture import held_addresses
from podtide.networks.confirmation import is_inert
from podtide.networks.ownership import may_be_reservation_of, pool_range
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.checks.network_book import draw_slices
from podtide.simulation.trace import ClusterWrite, Entry, PoolMove

_KINDS = {kind.api.kind for kind in (IPPool, OverlappingRangeIPReservation, NodeSlicePool)}


class ObjectHistory:
    """The history of a subject: a slice, or an address as the network that contains only it."""

    def __init__(self, subject: IPNetwork) -> None:
        self._subject = subject
        self._is_address = subject.num_addresses == 1
        self._said: dict[tuple[str, str], frozenset[str]] = {}
        """What each object contained of the subject when it was last written, by kind and name."""

    def words(self, entry: Entry | PoolMove) -> Iterator[str]:
        """The lines about the subject that follow from an entry."""
        if not isinstance(entry, ClusterWrite) or entry.kind not in _KINDS:
            return
        place = entry.kind, entry.name
        before, now = self._said.get(place, frozenset()), frozenset(self._says(entry))
        self._said[place] = now
        yield from (f"{entry}: no longer {fact}" for fact in sorted(before - now))
        yield from (f"{entry}: {fact}" for fact in sorted(now - before))

    def _says(self, entry: ClusterWrite) -> Iterator[str]:
        item = entry.item
        if isinstance(item, IPPool):
            yield from self._of_pool(item)
        elif isinstance(item, OverlappingRangeIPReservation):
            yield from self._of_reservation(item)
        elif isinstance(item, NodeSlicePool):
            for view in draw_slices(item):
                if overlap(view.slice, self._subject):
                    yield f"slice {view.slice} of {view.node}"

    def _of_pool(self, pool: IPPool) -> Iterator[str]:
        range_ = pool_range(pool)
        if range_ is None or not overlap(range_, self._subject):
            return
        if not self._is_address:
            yield f"a pool of {range_}{', inert' if is_inert(pool) else ''}"
        elif (holder := held_addresses(pool, range_).get(self._subject.network_address)) is not None:
            earlier = "".join(f", earlier {sandbox[:12]}" for sandbox in holder.earlier)
            yield f"held by {holder.podref} {holder.ifname} (sandbox {holder.id[:12]}{earlier})"

    def _of_reservation(self, reservation: OverlappingRangeIPReservation) -> Iterator[str]:
        name, spec = reservation.metadata.name, reservation.spec
        if self._is_address and may_be_reservation_of(name, self._subject.network_address):
            yield f"reserved for {spec.podref} {spec.ifname} (sandbox {spec.container_id[:12]})"
