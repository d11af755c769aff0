"""What is deleted when a slice or a network is gone: pools, the Leases of their writers, reservations of their addresses.

All of it is deleted before the slice is assigned to another node (design R11, "Slices"). A pool is deleted with the
resourceVersion that was found empty as precondition: an agent that takes an address of it at the same time wins.

`UnclaimedPools` is about empty pools for whole ranges that no definition asks for, and for which this term never saw
one. The pool of a classic network is deleted when its last definition is (`network_reconciler`); this is for those
whose definition was deleted while no controller ran. Nothing in such a pool says that it was a definition's, so it is
recognised by what is missing. That is safe: an agent that needs the pool after all creates it again, as Whereabouts
does, and an agent that writes at the same instant wins.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podtide.cluster.listing import get_if_there
from podtide.controller.slices.node_pools import named_network
from podtide.controller.slices.survey import SliceContext, SliceHolding, find_foreign_pool, side_by_side
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPAddress, IPNetwork, network_at, overlap
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import pool_range
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import normalise_range, reserved_address
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.timestamps import to_wall_seconds

_PAGE_ITEMS = 500


class SliceRemoval:
    """Deletes what is left of freed slices."""

    def __init__(self, context: SliceContext) -> None:
        self._context = context

    async def collect(
        self,
        name: str,
        freed: Sequence[SliceHolding],
        kept: Iterable[SliceAssignment],
        of: NetworkRange | None,
    ) -> None:
        """Delete what is left of the freed slices of the NodeSlicePool of that name.

        A pool that holds an address for a pod is never deleted, nor is a reservation that may be of another pool.
        """
        empty = [each for each in freed if each.custody is None or not each.custody.in_use]
        if not empty:
            return

        async def collect_one(holding: SliceHolding) -> None:
            await self._collect_pool(name, holding, of)

        await side_by_side(collect_one, empty)
        if of is not None:
            names = self._context.attachments.network_names()
            others = set(self._context.node_pools.occupied(of.network_name, names, name))
            others.update(self._context.other_networks.slices(name, of))
            await self._collect_reservations(
                of.network_name,
                {each.assignment.slice for each in empty},
                others | {each.slice for each in kept},
            )

    async def discard(self, strays: Iterable[IPPool]) -> None:
        """Delete pools that were never confirmed: no address was taken of them, so they left no Lease and no reservation."""

        async def discard_one(pool: IPPool) -> None:
            await self._context.writes.delete(pool, unchanged=True)
            self._context.log.info("unconfirmed pool deleted", pool=pool.metadata.name)

        await side_by_side(discard_one, strays)

    async def _collect_pool(self, name: str, holding: SliceHolding, of: NetworkRange | None) -> None:
        """Delete the slice's pool and its Lease; Conflict if the slice has another pool, which has to be deleted first."""
        context, assignment, pool = self._context, holding.assignment, holding.pool
        own = ""
        if pool is not None:
            own = pool.metadata.name
            await context.writes.delete(pool, unchanged=True)
            context.log.info("slice freed", node=assignment.node, slice=str(assignment.slice))
            await self._collect_lease(own, assignment.node)
        names = context.node_pools.names(of, assignment) if of else []
        for each in names:
            if each != own and await find_foreign_pool(context, each, name, assignment) is None:
                await self._collect_lease(each, assignment.node)

    async def _collect_lease(self, name: str, node: str) -> None:
        """Delete the Lease of the pool's name, unless annotation or holder say that it is another's."""
        lease = await get_if_there(self._context.cluster, Lease, name, self._context.namespace)
        if lease is None:
            return
        is_marked = lease.metadata.annotations.get(NODE_ANNOTATION) == node
        if is_marked and lease.spec.holder_identity in {node, ""}:
            await self._context.writes.delete(lease)

    async def _collect_reservations(
        self, network_name: str, gone: set[IPNetwork], others: set[IPNetwork]
    ) -> None:
        """Delete the reservations in these slices, with one pass over all reservations, whatever the number of slices."""

        def is_left(reservation: OverlappingRangeIPReservation) -> bool:
            address = reserved_address(network_name, reservation.metadata.name)
            return address is not None and _is_in(gone, address) and not _is_in(others, address)

        more, is_last = "", False
        while not is_last:
            page = await self._context.cluster.list(
                OverlappingRangeIPReservation, self._context.namespace, limit=_PAGE_ITEMS, more=more
            )
            await side_by_side(self._context.writes.delete, filter(is_left, page.items))
            more, is_last = page.more, not page.more


class UnclaimedPools(Struct, frozen=True):
    """Reconciles pools for whole ranges by name."""

    context: SliceContext

    def looks_unclaimed(self, pool: IPPool) -> bool:
        """Whether the pool looks like an unclaimed one, as far as the pool itself and the known definitions tell."""
        return (
            not pool.spec.allocations
            and _is_for_a_whole_range(pool)
            and self.context.attachments.classic_network(pool.metadata.name) is None
        )

    async def reconcile(self, name: str) -> float | None:
        """Delete the pool if it is unclaimed.

        Returns after how many seconds to look again, or None: its events queue it anyway.
        """
        context = self.context
        pool = context.node_pools.get(name)
        range_ = pool_range(pool) if pool is not None else None
        if pool is None or range_ is None or not self.looks_unclaimed(pool):
            return None
        if self._may_be_wanted(range_):
            return context.quarantine_seconds
        if (left_seconds := self._seconds_until_old(pool)) > 0:
            return left_seconds
        await context.writes.delete(pool, unchanged=True)
        context.log.info("unclaimed pool deleted", pool=name)
        return None

    def _may_be_wanted(self, range_: IPNetwork) -> bool:
        """Whether a network is there, or may be, that overlaps the range: then its own worker takes care of the pool."""
        context = self.context
        lists = (pool_range(each) for each in context.slice_pools.items())
        return (
            context.attachments.may_describe((), range_)
            or context.attachments.overlap_range(range_)
            or any(each is not None and overlap(each, range_) for each in lists)
        )

    def _seconds_until_old(self, pool: IPPool) -> float:
        """For how long the pool is too young to be judged: its definition may not have reached the cache yet."""
        made = to_wall_seconds(pool.metadata.creation_timestamp) if pool.metadata.creation_timestamp else 0.0
        left_seconds = made + self.context.quarantine_seconds - self.context.clock.wall()
        return min(
            left_seconds, self.context.quarantine_seconds
        )  # by a clock that was ahead it would be much longer


def _is_in(slices: set[IPNetwork], address: IPAddress) -> bool:
    """Whether the address is in one of the slices. There may be thousands, but they have only one or two sizes."""
    lengths = {slice_.prefixlen for slice_ in slices if slice_.version == address.version}
    return any(network_at(address, length) in slices for length in lengths)


def _is_for_a_whole_range(pool: IPPool) -> bool:
    """Whether it is named like a pool for a whole range and is not a node's own.

    Whereabouts' pools of slices can be named so, too.
    """
    range_ = pool_range(pool)
    if range_ is None or named_network(pool) or pool.metadata.annotations.get(NODE_ANNOTATION):
        return False
    whole = normalise_range(str(range_))
    return pool.metadata.name == whole or pool.metadata.name.endswith(f"-{whole}")
