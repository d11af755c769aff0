"""The writes of leak repair.

Each has the version it was decided from as precondition, so none overwrites an agent's write.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from podtide.cluster.listing import get_if_there
from podtide.cluster.port import Conflict
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import GuardedWrites
from podtide.controller.repair.snapshot import PoolEntry
from podtide.core.networks.allocations import Allocation
from podtide.networks.audit_picture import allocation_of, reservation_for
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, with_allocations
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.overlapping_range import OverlappingRangeIPReservation

_ATTEMPTS = 5
"""How often a write is retried.

A pool that a whole cluster shares is written all the time; the next pass does the rest.
"""


class RepairWrites:
    """Carries out what was decided. What another writer changed first is left for the next pass."""

    def __init__(self, writes: GuardedWrites, namespace: str, counts: RepairCounts) -> None:
        self._writes = writes
        self._namespace = namespace
        self._counts = counts

    async def release(self, pool_name: str, entries: Sequence[PoolEntry]) -> list[PoolEntry]:
        """Remove these entries from a pool. Returns those whose address is not held there now.

        The pool is read again, and exactly the entries that were judged are removed: an entry that another sandbox has
        taken over since is another entry.
        """
        for _ in range(_ATTEMPTS):
            pool = await self._read_pool(pool_name)
            allocations = pool.spec.allocations if pool else {}
            leaving = {held.key for held in entries if _has(allocations, held)}
            if pool and leaving:
                kept = {key: entry for key, entry in allocations.items() if key not in leaving}
                try:
                    await self._writes.replace(with_allocations(pool, kept))
                except Conflict:
                    continue
                self._counts.repairs["allocation-released"] += len(leaving)
            return [held for held in entries if held.key in leaving or held.key not in allocations]
        return []

    async def recount(self, pool_name: str) -> None:
        """Write how many addresses of a pool are taken, if another program's write left a wrong count.

        It is not counted as a repair: no address is concerned, and an alert fires where repairs go on and on.
        """
        pool = await self._read_pool(pool_name)
        if pool is not None and pool.is_miscounted:
            with suppress(Conflict):
                await self._writes.replace(with_allocations(pool, pool.spec.allocations))

    async def release_reservation(self, reservation: OverlappingRangeIPReservation) -> bool:
        """Delete a reservation, if it is as it was read."""
        try:
            await self._writes.delete(reservation, unchanged=True)
        except Conflict:
            return False
        self._counts.repairs["reservation-released"] += 1
        return True

    async def correct_reservation(
        self, reservation: OverlappingRangeIPReservation, holder: Allocation
    ) -> bool:
        """Change the holder of a reservation in place, so that the address is reserved at every moment.

        Which node the holder is on is not known here, so the annotation with the former holder's node is removed.
        """
        marks = {
            name: text for name, text in reservation.metadata.annotations.items() if name != NODE_ANNOTATION
        }
        place = replace(reservation.metadata, annotations=marks)
        try:
            await self._writes.replace(replace(reservation, metadata=place, spec=reservation_for(holder)))
        except Conflict:
            return False
        self._counts.repairs["reservation-corrected"] += 1
        return True

    async def restore_reservation(self, name: str, held: PoolEntry) -> bool:
        """Create the reservation for the pod that has the address, if it still has it."""
        pool = await self._read_pool(held.pool)
        if pool is None or not _has(pool.spec.allocations, held):
            return False
        place = ObjectMeta(name=name, namespace=self._namespace)
        try:
            await self._writes.create(
                OverlappingRangeIPReservation(metadata=place, spec=reservation_for(held.holder))
            )
        except Conflict:
            return False
        self._counts.repairs["reservation-restored"] += 1
        return True

    async def _read_pool(self, name: str) -> IPPool | None:
        return await get_if_there(self._writes.cluster, IPPool, name, self._namespace)


def _has(allocations: Mapping[str, IPAllocation], held: PoolEntry) -> bool:
    entry = allocations.get(held.key)
    return entry is not None and allocation_of(entry) == held.holder
