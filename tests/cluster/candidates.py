"""Candidates for leadership in one cluster, each with its own network and its own clock."""

import asyncio
import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import structs

from cluster.faulty_cluster import Faults, FaultyCluster, Script
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.leader_election import Lead, LeaderElection
from podtide.cluster.lease_record import released
from podtide.cluster.term import Term
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

LEASE = Key("kube-system", "podtide-controller")


class OwnClock(LoopClock):
    """A clock that may run fast or slow, be ahead, and show any time of day."""

    def __init__(self, rate: float = 1.0) -> None:
        super().__init__()
        self.rate = rate
        self.ahead_seconds = 0.0
        self.shown: float | None = None

    def monotonic(self) -> float:
        return super().monotonic() * self.rate + self.ahead_seconds

    def wall(self) -> float:
        return super().wall() if self.shown is None else self.shown


class Candidate:
    """A program that leads for ever when elected, and remembers its terms."""

    def __init__(
        self, world: "World", identity: str, faults: Faults | None = None, clock: OwnClock | None = None
    ) -> None:
        self.clock = clock or OwnClock()
        self.cluster = FaultyCluster(world.server, faults or Script())
        self.terms: list[Term] = []
        self.stopped_at: list[float] = []
        self.election = LeaderElection(
            self.cluster,
            LEASE,
            identity,
            runtime=Runtime(
                clock=self.clock,
                randomness=seeded_randomness(identity),
                log=make_logger(world.lines, self.clock),
                settings=Settings(),
            ),
        )
        self._task: asyncio.Task[Any] | None = None

    def start(self, lead: Lead[Any] | None = None) -> "asyncio.Task[Any]":
        self._task = asyncio.create_task(self.election.run(lead or self.lead))
        return self._task

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def lead(self, term: Term) -> None:
        self.terms.append(term)
        try:
            await asyncio.sleep(10**9)
        finally:
            self.stopped_at.append(asyncio.get_running_loop().time())

    @property
    def leads(self) -> bool:
        return any(term.valid for term in self.terms)


class World:
    """A cluster with a Lease that was given up, so that the first candidate leads at once."""

    def __init__(self) -> None:
        self.server = EmbeddedCluster(clock=LoopClock(), randomness=seeded_randomness(1))
        self.lines = io.StringIO()

    async def ship_lease(self) -> None:
        place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
        await self.server.create(Lease(metadata=place, spec=released(LeaseSpec())), manager="test")

    async def lease(self) -> Lease:
        return await self.server.get(Lease, LEASE.name, LEASE.namespace)

    async def edit(self, change: Callable[[Lease], Lease]) -> None:
        await self.server.replace(change(await self.lease()), manager="kubectl")

    async def edit_holder(self, identity: str) -> None:
        await self.edit(
            lambda lease: structs.replace(lease, spec=structs.replace(lease.spec, holder_identity=identity))
        )


def now() -> float:
    return asyncio.get_running_loop().time()
