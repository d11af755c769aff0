"""`podtide check --repair`: the controller's repair of leaks in secondary networks, run by hand.

It is the very code that the controller runs (`controller.repair`), so it does nothing that the controller would not do: a
leak must be found by two passes a grace period apart, its pod is read afresh before anything is freed, and each write has
the version it was decided from as precondition. Where a leak has to outlast the quarantine of a removed node, as
where its pod is gone, one run is too short, unless a longer grace is asked for.
"""

import asyncio
from collections import Counter

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster, R
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import GuardedWrites, unguarded
from podtide.controller.options import NetworkOptions
from podtide.controller.repair.repair_loop import RepairLoop
from podtide.core.networks.leaks import LeakGrace
from podtide.resources.base import Resource
from podtide.resources.node import Node
from podtide.runtime.runtime import Runtime

_A_LITTLE_LATER_SECONDS = 0.1


class RepairReport(Struct, frozen=True, kw_only=True):
    """What was repaired, or would be."""

    done: tuple[str, ...]
    """A line for each write."""
    left: int
    """Suspects that need a longer grace, and are left to the controller."""
    dry_run: bool


class RecordedWrites(GuardedWrites):
    """The writes of a repair, each written down; in a dry run none is made."""

    def __init__(self, cluster: Cluster, *, dry_run: bool) -> None:
        super().__init__(cluster, unguarded, Counter())
        self.lines: list[str] = []
        self._dry_run = dry_run

    async def create(self, item: R) -> R:
        """Create the object."""
        return await self._recorded("create", item)

    async def replace(self, item: R) -> R:
        """Replace the version that this was made from."""
        return await self._recorded("update", item)

    async def delete(self, item: R, *, unchanged: bool = False) -> None:
        """Delete this object."""
        if not self._dry_run:
            await super().delete(item, unchanged=unchanged)
        self._record("delete", item)

    async def _recorded(self, verb: str, item: R) -> R:
        if not self._dry_run:
            item = await (super().create(item) if verb == "create" else super().replace(item))
        self._record(verb, item)
        return item

    def _record(self, verb: str, item: Resource) -> None:
        self.lines.append(f"{verb} {item.api.kind} {item.key}")


async def repair_leaks(
    cluster: Cluster, namespace: str, *, patience: LeakGrace, dry_run: bool, runtime: Runtime
) -> RepairReport:
    """Two passes, the grace period apart; the second one repairs what both have found."""
    nodes = Informer(cluster, Node, runtime=runtime)
    writes, counts = RecordedWrites(cluster, dry_run=dry_run), RepairCounts()
    loop = RepairLoop(
        writes,
        nodes,
        NetworkOptions(namespace=namespace),
        patience=patience,
        counts=counts,
        runtime=runtime,
    )
    following = asyncio.create_task(nodes.run())
    try:
        await nodes.synced.wait()
        await loop.look()
        if counts.suspects:
            await asyncio.sleep(patience.leak_grace_seconds + _A_LITTLE_LATER_SECONDS)
            await loop.look()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return RepairReport(
        done=tuple(writes.lines), left=max(0, counts.suspects - sum(counts.repairs.values())), dry_run=dry_run
    )
