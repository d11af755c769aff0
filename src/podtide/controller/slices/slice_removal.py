"""What is left of a slice that nobody has any more: its pool, the Lease of who wrote it, reservations of its addresses.

All of it goes before the slice is given to another (DESIGN.md, "Slices"). The pool goes by the version that was found
empty: whoever takes an address of it meanwhile has won.
"""

from collections.abc import Iterable, Sequence

from podtide.cluster.port import NotFound
from podtide.controller.slices.context import SliceContext, side_by_side
from podtide.controller.slices.fresh_reads import find_anothers_pool
from podtide.controller.slices.survey import SliceHolding
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPAddress, IPNetwork, network_at
from podtide.networks.network import NetworkRange
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import reserved_address
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

_PAGE_ITEMS = 500


class SliceRemoval:
    """Deletes."""

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

        A pool in which somebody holds an address is never deleted, nor is a reservation that may be of another pool.
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
        """Delete pools that never counted: nothing was taken of them, so nothing else is left of them."""

        async def discard_one(pool: IPPool) -> None:
            await self._context.writes.delete(pool, unchanged=True)
            self._context.log.info("a pool that nobody confirmed is removed", pool=pool.metadata.name)

        await side_by_side(discard_one, strays)

    async def _collect_pool(self, name: str, holding: SliceHolding, of: NetworkRange | None) -> None:
        """Delete the slice's pool and its Lease; Conflict when it has another pool, which is to be seen to first."""
        context, assignment, pool = self._context, holding.assignment, holding.pool
        own = ""
        if pool is not None:
            own = pool.metadata.name
            await context.writes.delete(pool, unchanged=True)
            context.log.info("slice freed", node=assignment.node, slice=str(assignment.slice))
            await self._collect_lease(own, assignment.node)
        names = context.node_pools.names(of, assignment) if of else []
        for each in names:
            if each != own and await find_anothers_pool(context, each, name, assignment) is None:
                await self._collect_lease(each, assignment.node)

    async def _collect_lease(self, name: str, node: str) -> None:
        """The Lease is called like the pool; what the node's agent did not mark, or another holds, is somebody else's."""
        try:
            lease = await self._context.cluster.get(Lease, name, self._context.namespace)
        except NotFound:
            return
        is_marked = lease.metadata.annotations.get(NODE_ANNOTATION) == node
        if is_marked and lease.spec.holder_identity in {node, ""}:
            await self._context.writes.delete(lease)

    async def _collect_reservations(
        self, network_name: str, gone: set[IPNetwork], others: set[IPNetwork]
    ) -> None:
        """One look at all reservations, whatever the number of slices."""

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


def _is_in(slices: set[IPNetwork], address: IPAddress) -> bool:
    """Whether the address is in one of the slices, which are thousands of one size or two."""
    lengths = {slice_.prefixlen for slice_ in slices if slice_.version == address.version}
    return any(network_at(address, length) in slices for length in lengths)
