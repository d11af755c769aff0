"""Leak repair of secondary networks: one look at everything, now and then, and what is wrong is put right.

    an allocation whose pod is gone              struck off its pool
    one without uid that its pod does not show   the same
    a reservation whose pod is gone              deleted, after the allocation it was for
    a reservation of which no pool knows         deleted, if its pod certainly does not have the address
    a reservation for another than who has it    corrected in place
    an address held in a guarded pool alone      reserved for who has it

Nothing is concluded from one look: each must be found twice, some time apart, by one and the same leader, and before
anything is freed the cluster is asked for the pod itself (DESIGN.md "Absence"). A cluster in order is read once
per interval, and nothing is written.
"""

from random import Random
from typing import Any, NoReturn

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import GuardedWrites
from podtide.controller.repair.orphans import AllocationRepair, ReservationRepair
from podtide.controller.repair.pod_lookup import PodLookup
from podtide.controller.repair.snapshot import read_pods, read_snapshot
from podtide.controller.repair.writes import RepairWrites
from podtide.controller.repair_schedule import check_expression, seconds_until
from podtide.core.errors import InvalidInput
from podtide.core.networks.leaks import Patience, Suspects
from podtide.resources.base import Key
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_A_LITTLE_LATER_SECONDS = 1.0
"""After somebody is due, so that he certainly is."""
_A_DAY_SECONDS = 86_400.0
"""However rarely configurations want a look, Whereabouts' own default is kept: who may write one of them decides for all."""


class RepairLoop:
    """One leader's repair: what it remembers of earlier looks ends with its term."""

    def __init__(  # noqa: PLR0913 - what it acts on, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        *,
        writes: GuardedWrites,
        nodes: Informer[Node],
        patience: Patience,
        interval_seconds: float,
        counts: RepairCounts,
        clock: Clock,
        randomness: Random,
        log: Logger,
        namespace: str = SYSTEM_NAMESPACE,
        schedule: str = "",
    ) -> None:
        """`schedule` is a cron expression that goes before those of configurations, and these before the interval.

        It is the operator's, and holds as it is; by those of configurations there is a look once a day at least.
        """
        if schedule:
            check_expression(schedule)
        self._cluster = cluster
        self._nodes = nodes
        self._interval_seconds = interval_seconds
        self._counts = counts
        self._clock = clock
        self._randomness = randomness
        self._log = log
        self._namespace = namespace
        self._schedule = schedule
        self._refused: set[str] = set()
        mending = RepairWrites(cluster, writes, namespace, counts)
        self._allocations = AllocationRepair(mending, patience=patience, log=log)
        self._reservations = ReservationRepair(mending, patience=patience, log=log)

    async def run(self) -> NoReturn:
        """Look again and again, until cancelled. The copies of Nodes must be complete by then."""
        queue = WorkQueue[str]()
        queue.add(self._namespace)
        workers = Workers(queue, clock=self._clock, randomness=self._randomness, log=self._log)
        await workers.run(lambda _namespace: self.look())
        raise AssertionError("a queue that nobody stops has no end")

    async def look(self) -> float:
        """Look once, and put right what is due. Answers in how many seconds to look again."""
        books = await read_snapshot(self._cluster, self._namespace)
        pods = await read_pods(self._cluster, books.podrefs(), self._is_node_known)
        now = self._clock.monotonic()
        fresh = PodLookup(self._cluster, self._nodes)
        released = await self._allocations.mend(books, pods, fresh, now)
        await self._reservations.mend(books, pods, released, fresh, now)
        self._counts.looks += 1
        self._counts.suspects = sum(map(len, self._suspects))
        return self._next_look_seconds(books.schedules)

    @property
    def _suspects(self) -> tuple[Suspects[Any], ...]:
        return self._allocations.suspects, self._reservations.doubted, self._reservations.missing

    def _next_look_seconds(self, stated: frozenset[str]) -> float:
        """By the schedule, if there is one; but what was found now is not left for another day."""
        wall = self._clock.wall()
        if self._schedule:
            regular = seconds_until([self._schedule], wall)
        elif expressions := self._usable(stated):
            regular = min(seconds_until(expressions, wall), _A_DAY_SECONDS)
        else:
            regular = self._interval_seconds
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
