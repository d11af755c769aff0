"""What the lists of other networks say of the addresses that a network cuts into slices.

All unnamed networks share one scope of addresses, and their ranges may overlap (10.0.0.0/16 and 10.0.0.0/17). Each has
its own list and its own worker, and nothing can be written into two lists at once. So whoever has written a slice into
his list looks into the others before the slice's pool is confirmed, and confirms only what is in no other. Of two who
wrote the same at one moment, the second to write finds the first one's entry, whoever he is: another worker, or another
controller. Both may find each other; then the list whose name comes first keeps the slice.

To look is to wait until the copies show the list as it was written: the server tells of all lists in one order, so by
then they show whatever was written into any of them before.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from podtide.cluster.informer import Informer
from podtide.cluster.port import Conflict
from podtide.controller.slices.attachments import AttachmentIndex
from podtide.controller.slices.node_pool_index import NodePoolIndex, scope_of
from podtide.controller.slices.slice_pool_object import range_of
from podtide.core.errors import InvalidRange
from podtide.core.networks.slices import SliceAssignment
from podtide.core.ranges import IPNetwork, overlap, parse_network
from podtide.networks.confirmation import is_inert
from podtide.networks.network import NetworkRange
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.node_slice_pool import NodeSlicePool

PATIENCE_SECONDS = 10.0
"""How long a write may take to come back by the watch, before the network is looked at again."""


class OtherNetworks:
    """Reads the copies."""

    def __init__(
        self, cache: Informer[NodeSlicePool], node_pools: NodePoolIndex, attachments: AttachmentIndex
    ) -> None:
        self._cache = cache
        self._node_pools = node_pools
        self._attachments = attachments
        self._news = asyncio.Event()

    def note(self) -> None:
        """The copies changed."""
        self._news.set()

    async def shown_since(self, written: NodeSlicePool) -> None:
        """Wait until the copies show this list, as it was written; Conflict when they do not."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._show(written):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise Conflict(
                f"NodeSlicePool {written.key} was written, and the copy does not show it: look again"
            ) from None

    def slices(self, name: str, of: NetworkRange) -> list[IPNetwork]:
        """The slices of addresses of this range that other lists have somebody for."""
        return [each.slice for other in self._overlapping(name, of) for each in _entries(other)]

    def stronger(self, name: str, of: NetworkRange) -> list[IPNetwork]:
        """Those that the list of this name has to leave to others: in use, or of a list whose name comes first."""
        found = []
        for other in self._overlapping(name, of):
            usable = self._usable(other.metadata.name)
            found += [each.slice for each in _entries(other) if other.metadata.name < name or each in usable]
        return found

    def _show(self, written: NodeSlicePool) -> bool:
        copy = self._cache.get(written.key)
        return copy is not None and copy.metadata.resource_version == written.metadata.resource_version

    def _overlapping(self, name: str, of: NetworkRange) -> Iterator[NodeSlicePool]:
        names = self._attachments.network_names()
        for each in self._cache.items():
            other = each.metadata.name
            if other == name or scope_of(other, names) != of.network_name:
                continue
            range_ = range_of(each)
            if range_ is not None and overlap(range_, of.addresses.network) is not None:
                yield each

    def _usable(self, name: str) -> set[SliceAssignment]:
        """Slices of a list whose pools agents may use."""
        return {
            SliceAssignment(pool.metadata.annotations.get(NODE_ANNOTATION, ""), slice_)
            for pool, slice_ in self._node_pools.of(name)
            if slice_ is not None and not is_inert(pool)
        }


def _entries(pool: NodeSlicePool) -> Iterator[SliceAssignment]:
    for entry in pool.status.allocations if pool.status else ():
        if entry.node_name:
            with suppress(InvalidRange):  # an entry that cannot be read is nobody's
                yield SliceAssignment(entry.node_name, parse_network(entry.slice_range))
