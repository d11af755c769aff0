"""Nodes that change their minds all the time, and the controller that acts for them: a load whose clients check every answer.

Each node has one container after the other, changes what it wants of it, and deletes one in three. What a node knows of its
container must be so at the end, whatever was killed meanwhile. Where the allocator's store went back, and that is what it
takes every failover for, the controller reports what the nodes hold, as podtide's own does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from time import monotonic
from typing import TypeVar

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import AllocatorUnavailable, StoreRecovering
from podtide.allocator.port import Allocator
from podtide.allocator.terms import HeldAddress, HeldContainer, SeenVersion, TermClaim

CLUSTER = "east"
NETWORK = "blue"
SUBNET = "pods"
_CHANGES = 4
_MOST_WANTED = 24
_ASK_AGAIN_SECONDS = 0.05
_REPORTED_AT_A_TIME = 16
_RECOVERING_SECONDS = 1.0
"""After which a refused node asks again, unless the report was finished before."""

T = TypeVar("T")


class WrongAnswer(AssertionError):
    """The allocator contradicted what it had answered before."""


class WishLoad:
    """Nodes that change their minds until they are told to stop. What they know at the end must be so."""

    def __init__(
        self, allocator: Allocator, *, cluster_uid: str = "", most_pause_seconds: float = 0.0
    ) -> None:
        """With a `cluster_uid` there has to be a controller: see `act_for_cluster`."""
        self._allocator = allocator
        self._cluster_uid = cluster_uid
        self._most_pause_seconds = most_pause_seconds
        self.answered = asyncio.Event()
        self.answered_at: list[float] = []
        """When wishes were answered, by the monotonic clock."""
        self.stopping = False
        self.held = dict[str, AllocatedContainer]()
        self.gone: set[str] = set()
        self.recoveries: list[int] = []
        """The recoveries of the allocator's store that were reported to."""
        self.complaints: list[str] = []
        """What the allocator found contradictory in reports."""
        self._reported = asyncio.Event()
        """Set, and replaced, when a report is finished: a controller goes on with its nodes then."""
        self._releasing: dict[str, tuple[str, ...]] = {}
        self._deleting: set[str] = set()

    async def node(self, name: str, *, containers: int | None = None) -> None:
        """One container after the other, or so many: made, changed a few times, and one time in three deleted."""
        randomness = Random(name)  # noqa: S311 - the same load every time
        for number in count():
            await self._container(f"{name}-{number}", randomness, is_last=number + 1 == containers)
            if self.stopping:
                return

    async def act_for_cluster(self, renew_seconds: float) -> None:
        """Renew the cluster's term until the load stops, and report what nodes hold when the store asks for it."""
        while not self.stopping:
            seen = SeenVersion(NETWORK, SUBNET, max((each.version for each in self.held.values()), default=0))
            claim = TermClaim(cluster=CLUSTER, cluster_uid=self._cluster_uid, holder="load", seen=(seen,))
            opened = await _until_it_answers(partial(self._allocator.open_term, claim))
            if opened.recovery:
                await self._report(opened.recovery)
            await asyncio.sleep(renew_seconds)

    async def _report(self, recovery: int) -> None:
        # An answer to what was asked before this is dropped: it may be of the store before it went back.
        self.recoveries.append(recovery)
        reports = [
            self._report_of(container, recovery)
            for container in self.held.values()
            if container.id not in self._deleting
        ]
        waiting = iter(reports)

        async def report_next() -> None:
            for report in waiting:
                self.complaints += await _until_it_answers(partial(self._allocator.adopt_container, report))

        async with asyncio.TaskGroup() as group:
            for _ in range(_REPORTED_AT_A_TIME):
                group.create_task(report_next())
        await _until_it_answers(
            lambda: self._allocator.finish_report(CLUSTER, cluster_uid=self._cluster_uid, recovery=recovery)
        )
        self._reported.set()
        self._reported = asyncio.Event()

    def _report_of(self, container: AllocatedContainer, recovery: int) -> HeldContainer:
        given_up = self._releasing.get(container.id, ())
        held = [each for each in container.addresses if each.name not in given_up]
        return HeldContainer(
            id=container.id,
            network=NETWORK,
            subnet=SUBNET,
            cluster=CLUSTER,
            cluster_uid=self._cluster_uid,
            node=container.node,
            primary=container.primary,
            version=container.version,
            request_uid=container.request_uid,
            generation=container.generation,
            recovery=recovery,
            addresses=tuple(HeldAddress(each.name, each.ip) for each in held),
            gave_up=len(given_up),
        )

    async def _container(self, id_: str, randomness: Random, *, is_last: bool) -> None:
        """A container's life; that of the last one lasts until the load stops."""
        for generation in count() if is_last else range(_CHANGES):
            await self._change(id_, generation, randomness)
            if self._most_pause_seconds:
                await asyncio.sleep(randomness.uniform(0, self._most_pause_seconds))
            if is_last and self.stopping:
                return
        if randomness.random() < 1 / 3:
            self._deleting.add(id_)
            await self._insist(
                lambda: self._allocator.delete_container(id_, cluster=CLUSTER, cluster_uid=self._cluster_uid)
            )
            self.gone.add(id_)
            del self.held[id_]

    async def _change(self, id_: str, generation: int, randomness: Random) -> None:
        before = self.held.get(id_)
        had = names(before) if before else []
        release = tuple(randomness.sample(had, len(had) // 2))
        wanted = randomness.randrange(_MOST_WANTED)
        wish = Wish(
            id=id_,
            network=NETWORK,
            subnet=SUBNET,
            cluster=CLUSTER,
            node=f"node-{id_}",
            request_uid=f"request-{id_}",
            generation=generation,
            count=wanted,
            release=release,
            cluster_uid=self._cluster_uid,
            seen=before.version if before else 0,
        )
        self._releasing[id_] = release
        recoveries = len(self.recoveries)
        now = await self._insist(lambda: self._allocator.put_container(wish))
        del self._releasing[id_]
        kept = [name for name in had if name not in release]
        last = before.version if before else 0
        is_same = before is not None and names(now) == had
        if names(now)[: len(kept)] != kept or len(now.addresses) != max(wanted, len(kept)):
            raise WrongAnswer(f"{wish} after {before} was answered by {now}")
        if recoveries == len(self.recoveries) and not (
            now.version == last if is_same else now.version > last
        ):
            raise WrongAnswer(f"{wish} after version {last} was answered by {now}")
        if now.version < last:
            raise WrongAnswer(f"{wish} after version {last} was answered by {now}")
        self.held[id_] = now
        self.answered_at.append(monotonic())
        self.answered.set()

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of a store that grants, after all that was reported to it."""
        while True:
            recoveries = len(self.recoveries)
            try:
                answer = await ask()
            except StoreRecovering:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RECOVERING_SECONDS):
                        await self._reported.wait()
                continue
            if recoveries == len(self.recoveries):
                return answer


async def _until_it_answers(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await ask()
        except AllocatorUnavailable:
            await asyncio.sleep(_ASK_AGAIN_SECONDS)


def names(container: AllocatedContainer) -> list[str]:
    """The names of its addresses."""
    return [address.name for address in container.addresses]
