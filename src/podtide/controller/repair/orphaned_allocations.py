"""Allocations whose pods are gone, struck off their pools."""

from collections import defaultdict
from collections.abc import Mapping

from podtide.controller.repair.pod_lookup import PodLookup
from podtide.controller.repair.snapshot import PoolEntry, RepairSnapshot
from podtide.controller.repair.writes import RepairWrites
from podtide.core.networks.leaks import Orphaned, Patience, PodSeen, Suspects, why_orphaned
from podtide.runtime.logging import Logger


class AllocationRepair:
    """Remembers since when an allocation seems to be nobody's."""

    def __init__(self, writes: RepairWrites, *, patience: Patience, log: Logger) -> None:
        self.suspects = Suspects[PoolEntry]()
        self._writes = writes
        self._patience = patience
        self._log = log

    async def mend(
        self, books: RepairSnapshot, pods: Mapping[str, PodSeen], fresh: PodLookup, now: float
    ) -> set[PoolEntry]:
        """Release what is due. Answers the entries that nobody holds any more."""
        orphans = {
            held: self._patience.seconds(reason)
            for held in books.entries()
            if (reason := why_orphaned(held.holder, pods.get(held.holder.podref), books.address_of(held)))
        }
        due: dict[str, list[PoolEntry]] = defaultdict(list)
        reasons: dict[PoolEntry, Orphaned] = {}
        for held in self.suspects.due(orphans, now):
            pod = await fresh.seen(held.holder.podref)
            confirmed = why_orphaned(held.holder, pod, books.address_of(held))
            if confirmed is not None:
                due[held.pool].append(held)
                reasons[held] = confirmed
        released: set[PoolEntry] = set()
        for pool, entries in due.items():
            for held in await self._writes.release(pool, entries):
                released.add(held)
                self._log.warning(
                    "released a leaked address",
                    pool=pool,
                    address=str(books.address_of(held) or held.key),
                    pod=held.holder.podref,
                    reason=reasons[held],
                )
        return released
