"""Leak repair of secondary networks: one pass over everything at an interval, and what is wrong is corrected.

    an allocation whose pod is gone                          removed from its pool
    an allocation without uid that its pod does not show     the same
    a reservation whose pod is gone                          deleted, after the allocation it was for
    a reservation that no pool has an allocation for         deleted, if its pod certainly does not have the address
    a reservation for another pod than the one that has it   corrected in place
    an address in a guarded pool without a reservation       reserved for the pod that has it
    a pool whose stated count is not that of its entries     counted again, for the columns of `kubectl get`

Of leaks nothing is concluded from one pass: each must be found twice, some time apart, by the same leader, and before
anything is freed the pod is read afresh (design R3). In a cluster without leaks each interval costs one read
of everything and no write.
"""

from typing import Any, NoReturn

from podtide.cluster.informer import Informer
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import GuardedWrites
from podtide.controller.options import NetworkOptions
from podtide.controller.repair.orphans import AllocationRepair, ReservationRepair
from podtide.controller.repair.pod_lookup import PodLookup
from podtide.controller.repair.snapshot import read_pods, read_snapshot
from podtide.controller.repair.writes import RepairWrites
from podtide.controller.repair_schedule import check_expression, seconds_until
from podtide.core.errors import InvalidInput
from podtide.core.networks.leaks import LeakGrace, SuspectTimes
from podtide.resources.base import Key
from podtide.resources.node import Node
from podtide.runtime.runtime import Runtime

_A_LITTLE_LATER_SECONDS = 1.0
"""Added to the time at which a suspect is due, so that it certainly is by then."""
_A_DAY_SECONDS = 86_400.0
"""The longest interval by schedules of configurations, as in Whereabouts: a tenant who may write one decides for all."""


class RepairLoop:
    """The leak repair of one term: what it remembers of earlier passes ends with the term."""

    def __init__(  # noqa: PLR0913 - what it acts on, how patient it is, and what it runs in
        self,
        writes: GuardedWrites,
        nodes: Informer[Node],
        options: NetworkOptions,
        *,
        patience: LeakGrace,
        counts: RepairCounts,
        runtime: Runtime,
    ) -> None:
        """By schedules of configurations there is a pass once a day at least; the operator's is used as it is."""
        self._cluster = writes.cluster
        self._nodes = nodes
        self._namespace = options.namespace
        self._schedule = options.repair_schedule
        self._counts = counts
        self._runtime = runtime
        self._clock = runtime.clock
        self._log = runtime.log
        self._refused: set[str] = set()
        self._mending = mending = RepairWrites(writes, options.namespace, counts)
        self._allocations = AllocationRepair(mending, patience=patience, log=runtime.log)
        self._reservations = ReservationRepair(mending, patience=patience, log=runtime.log)

    async def run(self) -> NoReturn:
        """Run pass after pass until cancelled. The cache of Nodes must be synced before."""
        queue = WorkQueue[str]()
        queue.add(self._namespace)
        workers = Workers(queue, runtime=self._runtime)
        await workers.run(lambda _namespace: self.look())
        raise AssertionError("the work queue ended without being stopped")

    async def look(self) -> float:
        """Run one pass and correct what is due. Returns in how many seconds to run the next."""
        snapshot = await read_snapshot(self._cluster, self._namespace)
        pods = await read_pods(self._cluster, snapshot.podrefs(), self._is_node_known)
        now = self._clock.monotonic()
        fresh = PodLookup(self._cluster, self._nodes)
        released = await self._allocations.repair(snapshot, pods, fresh, now)
        await self._reservations.repair(snapshot, pods, released, fresh, now)
        for pool in snapshot.pools.values():
            if pool.is_miscounted:
                await self._mending.recount(pool.name)
        self._counts.looks += 1
        self._counts.suspects = sum(map(len, self._suspects))
        return self._next_look_seconds(snapshot.schedules)

    @property
    def _suspects(self) -> tuple[SuspectTimes[Any], ...]:
        return self._allocations.suspects, self._reservations.doubted, self._reservations.missing

    def _next_look_seconds(self, stated: frozenset[str]) -> float:
        """When the next pass is due: by the schedule, or earlier for suspects that were found now."""
        wall = self._clock.wall()
        if self._schedule:
            regular = seconds_until([self._schedule], wall)
        elif expressions := self._usable(stated):
            regular = min(seconds_until(expressions, wall), _A_DAY_SECONDS)
        else:
            regular = self._runtime.settings.repair_interval_seconds
        now = self._clock.monotonic()
        follow_ups = (suspects.next_due_seconds(now) for suspects in self._suspects)
        return min(
            [
                regular,
                *(seconds + _A_LITTLE_LATER_SECONDS for seconds in follow_ups if seconds is not None),
            ]
        )

    def _usable(self, stated: frozenset[str]) -> list[str]:
        usable = []
        for expression in sorted(stated):
            try:
                check_expression(expression)
                usable.append(expression)
            except InvalidInput as error:
                if expression not in self._refused:
                    self._refused.add(expression)
                    self._log.warning("reconciler_cron_expression is ignored", error=str(error))
        return usable

    def _is_node_known(self, name: str) -> bool:
        return self._nodes.get(Key("", name)) is not None
