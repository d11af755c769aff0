"""Which pool and pod has each address of a secondary network, updated and checked at every write.

    pools, reservations, slices     every write of them that the cluster took         from the trace
    sandboxes                       what each was answered, while it lives            from the machines

Invariants 1, 2 and 4 (design I1, I2 and I4), and the order of writes that they rest on (design R11 and R12):

    an address of a network is one living sandbox's, and in one pool
    what a living sandbox has is held for its pod, from its answer to its end
    what a guarded pool holds is reserved for the same pod
    slices of two nodes do not overlap; an entry is there before its pool counts, and as long as it
    nothing is given of a pool that does not count (`podtide.networks.confirmation`)

Findings are kept here and not passed to programs, which could not have known of them.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podtide.core.audit.invariants import Violation
from podtide.core.audit.networks import NetworkPicture, SliceView, audit_networks
from podtide.core.networks.allocations import Allocation
from podtide.core.ranges import IPAddress, IPNetwork, parse_address, parse_network
from podtide.networks.audit_picture import held_addresses
from podtide.networks.confirmation import is_confirmed, is_inert
from podtide.networks.ownership import KnownNetworks, pool_range
from podtide.resources.base import Resource
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NETWORK_ANNOTATION, NODE_ANNOTATION
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.nodes.kubelet import Sandbox
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.trace import ClusterWrite, Entry

_TWICE, _RESERVED, _TAKEN_FROM_A_POD = 1, 2, 4

Scope = str
"""Where an address may be only one pod's: a `network_name` where addresses are reserved, else a network."""
Place = tuple[Scope, IPAddress]


class _Pool(Struct, frozen=True, kw_only=True):
    """An IPPool as it was last written."""

    scope: Scope
    guarded: bool
    holders: Mapping[IPAddress, Allocation]
    range: IPNetwork
    slice: SliceView | None
    """None for a pool that all nodes share, or that is not confirmed."""
    is_unconfirmed: bool
    """Whether it is a node's own pool and not confirmed yet, so that it may not be used."""


class NetworkBook:
    """The book of a world with these networks."""

    def __init__(self, defined: Iterable[Definition]) -> None:
        self.findings: list[Violation] = []
        """The violations, oldest first."""
        self._known = KnownNetworks(each.network for each in defined)
        self._scopes = {
            each.interface: _scope(
                each.network.ranges[0].network_name, each.network.key, guarded=each.network.guarded
            )
            for each in defined
        }
        self._pools: dict[str, _Pool] = {}
        self._held: dict[Place, dict[str, Allocation]] = {}
        """By pool."""
        self._reserved_for: dict[Place, str] = {}
        """Pods, by what is reserved for them."""
        self._listed: dict[str, frozenset[tuple[str, IPNetwork]]] = {}
        """The entries of NodeSlicePools."""
        self._had: dict[Place, dict[str, str]] = {}
        """The pods of living sandboxes that have an address, by sandbox."""
        self._ghosts: set[tuple[Place, str]] = set()
        """Allocations that a restore brought back after their pods had released them: another pod may have the reservation now."""
        self._lost: set[tuple[Place, str]] = set()
        """Reservations of ADDs in flight that a restore removed: the pool may be written before that is noticed, but the
        ADD must not be answered."""

    # What happens

    def hear(self, entry: Entry) -> None:
        """Update the book by an entry of the trace."""
        if not isinstance(entry, ClusterWrite):
            return
        if entry.kind == IPPool.api.kind:
            self._take_pool(entry.name, entry.item if isinstance(entry.item, IPPool) else None)
        elif entry.kind == OverlappingRangeIPReservation.api.kind:
            item = entry.item
            self._take_reservation(
                entry.name, item if isinstance(item, OverlappingRangeIPReservation) else None
            )
        elif entry.kind == NodeSlicePool.api.kind:
            self._take_list(entry.name, entry.item if isinstance(entry.item, NodeSlicePool) else None)

    def restored(self, items: Iterable[Resource]) -> None:
        """Replace the objects by these, after the cluster was restored. What is missing since is not a finding."""
        reserved = set(self._reserved_for.items())
        self._pools.clear()
        self._held.clear()
        self._reserved_for.clear()
        self._listed.clear()
        known = len(self.findings)
        for item in items:
            name = item.metadata.name
            if isinstance(item, OverlappingRangeIPReservation):
                self._take_reservation(name, item)
            elif isinstance(item, NodeSlicePool):
                self._take_list(name, item)
            elif isinstance(item, IPPool):
                self._take_pool(name, item)
        del self.findings[known:]
        self._ghosts = {
            (place, holder.podref)
            for place, holders in self._held.items()
            for holder in holders.values()
            if not self._has(place, holder.podref)
        }
        self._lost = {
            (place, pod) for place, pod in reserved - self._reserved_for.items() if not self._has(place, pod)
        }

    def sandbox_changed(
        self, had: Mapping[str, tuple[str, ...]], old: Sandbox | None, new: Sandbox | None
    ) -> None:
        """Update the book by a sandbox that was created, changed or removed, with its addresses by interface."""
        if old is not None and old.addresses:
            self.gone(old)
        if new is not None and new.addresses:
            for interface, addresses in had.items():
                for address in map(parse_address, addresses):
                    self._given(new, (self._scopes[interface], address))

    def gone(self, sandbox: Sandbox) -> None:
        """Remove all addresses of a sandbox."""
        for place in [place for place, pods in self._had.items() if sandbox.id in pods]:
            del self._had[place][sandbox.id]
            if not self._had[place]:
                del self._had[place]

    def had_by_the_living(self) -> set[tuple[IPAddress, str]]:
        """The addresses of living sandboxes, with their pods."""
        return {(address, pod) for (_, address), pods in self._had.items() for pod in pods.values()}

    def _given(self, sandbox: Sandbox, place: Place) -> None:
        others = self._had.setdefault(place, {})
        for other in others.values():
            self._find(_TWICE, place, f"is had by pod {sandbox.pod}, and by pod {other}")
        others[sandbox.id] = sandbox.pod
        if sandbox.pod not in self._holders(place):
            self._find(_TAKEN_FROM_A_POD, place, f"was given to pod {sandbox.pod}, and no pool has it so")
        if (place, sandbox.pod) in self._lost and self._reserved_for.get(place) != sandbox.pod:
            self._find(_RESERVED, place, f"was given to pod {sandbox.pod}, and is not reserved so")

    def _take_pool(self, name: str, written: IPPool | None) -> None:
        old, new = self._pools.pop(name, None), self._seen(written) if written else None
        before = {(old.scope, address): each.podref for address, each in old.holders.items()} if old else {}
        for place in before:
            del self._held[place][name]
            if not self._held[place]:
                del self._held[place]
        if new is not None:
            self._pools[name] = new
            for address, holder in new.holders.items():
                self._held.setdefault((new.scope, address), {})[name] = holder
            self._look_at_pool(name, old, new)
        for place, holder_before in before.items():
            for pod in self._had.get(place, {}).values():
                if pod == holder_before and pod not in self._holders(place):
                    self._find(_TAKEN_FROM_A_POD, place, f"is had by pod {pod}, and pool {name} lost it")

    def _look_at_pool(self, name: str, old: _Pool | None, new: _Pool) -> None:
        known = old.holders if old else {}
        for address, holder in new.holders.items():
            if known.get(address) == holder:
                continue
            place = new.scope, address
            pods = [
                each.podref for each in self._held[place].values() if (place, each.podref) not in self._lost
            ]
            if len(pods) > 1:
                self._find(_TWICE, place, f"is held in pools {' and '.join(sorted(self._held[place]))}")
            is_lost = (place, holder.podref) in self._lost
            if new.guarded and self._reserved_for.get(place) != holder.podref and not is_lost:
                self._find(
                    _RESERVED, place, f"is held by {holder.podref} in pool {name}, and not reserved so"
                )
        if new.holders and new.is_unconfirmed:
            self._find(_TWICE, ("", new.range), f"is of pool {name}, which is used and was never confirmed")
        if new.slice is not None and (new.slice.node, new.slice.slice) not in self._listed.get(
            new.slice.network, frozenset()
        ):
            self._find(_TWICE, ("", new.slice.slice), f"is the slice of pool {name}, and no list has it so")

    def _take_reservation(self, name: str, written: OverlappingRangeIPReservation | None) -> None:
        found = self._known.of_reservation(name)
        if found is None:
            return
        network_name, address = found
        place = _scope(network_name, "", guarded=True), address
        self._reserved_for.pop(place, None)
        if written is not None:
            self._reserved_for[place] = written.spec.podref
        for pool, holder in self._held.get(place, {}).items():
            held = place, holder.podref
            if (
                self._reserved_for.get(place) != holder.podref
                and held not in self._ghosts
                and held not in self._lost
            ):
                words = f"is held by {holder.podref} in pool {pool}, and reserved no more"
                self._find(_RESERVED, place, words)

    def _take_list(self, name: str, written: NodeSlicePool | None) -> None:
        entries = frozenset[tuple[str, IPNetwork]]()
        if written is not None:
            views = draw_slices(written)
            entries = frozenset((view.node, view.slice) for view in views)
            self.findings += audit_networks(NetworkPicture(slices=views))
        self._listed[name] = entries
        for pool, seen in self._pools.items():
            if (
                seen.slice
                and seen.slice.network == name
                and (seen.slice.node, seen.slice.slice) not in entries
            ):
                self._find(_TWICE, ("", seen.slice.slice), f"is freed, and pool {pool} has it still")

    # What is so

    def _has(self, place: Place, pod: str) -> bool:
        return pod in self._had.get(place, {}).values()

    def _holders(self, place: Place) -> set[str]:
        return {holder.podref for holder in self._held.get(place, {}).values()}

    def _seen(self, pool: IPPool) -> _Pool | None:
        range_, belonging = pool_range(pool), self._known.of_pool(pool)
        if range_ is None or belonging is None:
            return None
        marks = pool.metadata.annotations
        node = marks.get(NODE_ANNOTATION, "")
        counts = bool(node) and not is_inert(pool)
        return _Pool(
            scope=_scope(belonging.network_name, belonging.network, guarded=belonging.guarded),
            guarded=belonging.guarded,
            holders=held_addresses(pool, range_),
            range=range_,
            slice=SliceView(network=marks[NETWORK_ANNOTATION], node=node, slice=range_) if counts else None,
            is_unconfirmed=bool(node) and not is_confirmed(pool),
        )

    def _find(self, invariant: int, place: tuple[str, IPAddress | IPNetwork], words: str) -> None:
        self.findings.append(Violation(invariant, str(place[1]), f"{place[1]} {words}"))


def draw_slices(pool: NodeSlicePool) -> tuple[SliceView, ...]:
    """The entries of a NodeSlicePool that have a node."""
    return tuple(
        SliceView(network=pool.metadata.name, node=entry.node_name, slice=parse_network(entry.slice_range))
        for entry in (pool.status.allocations if pool.status else ())
        if entry.node_name
    )


def _scope(network_name: str, key: str, *, guarded: bool) -> Scope:
    return f"reserved as {network_name}" if guarded else f"network {key}"
