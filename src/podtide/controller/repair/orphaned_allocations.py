"""Allocations whose pods are gone, struck off their pools."""

from collections import defaultdict
from collections.abc import Mapping

from podtide.controller.repair.pod_lookup import FreshPods
from podtide.controller.repair.snapshot import Books, Held
from podtide.controller.repair.writes import Mending
from podtide.core.networks.leaks import LeakGrace, Orphaned, PodSeen, SuspectTimes, why_orphaned
from podtide.runtime.logging import Logger


class AllocationRepair:
    """Remembers since when an allocation seems to be nobody's."""

    def __init__(self, mending: Mending, *, patience: LeakGrace, log: Logger) -> None:
        self.suspects = SuspectTimes[Held]()
        self._mending = mending
        self._patience = patience
        self._log = log

    async def mend(
        self, books: Books, pods: Mapping[str, PodSeen], fresh: FreshPods, now: float
    ) -> set[Held]:
        """Release what is due. Answers the entries that nobody holds any more."""
        orphans = {
            held: self._patience.seconds(reason)
            for held in books.entries()
            if (reason := why_orphaned(held.holder, pods.get(held.holder.podref), books.address_of(held)))
        }
        due: dict[str, list[Held]] = defaultdict(list)
        reasons: dict[Held, Orphaned] = {}
        for held in self.suspects.due(orphans, now):
            pod = await fresh.seen(held.holder.podref)
            confirmed = why_orphaned(held.holder, pod, books.address_of(held))
            if confirmed is not None:
                due[held.pool].append(held)
                reasons[held] = confirmed
        released: set[Held] = set()
        for pool, entries in due.items():
            for held in await self._mending.release(pool, entries):
                released.add(held)
                self._log.warning(
                    "released a leaked address",
                    pool=pool,
                    address=str(books.address_of(held) or held.key),
                    pod=held.holder.podref,
                    reason=reasons[held],
                )
        return released
