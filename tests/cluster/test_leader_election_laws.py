"""The laws of leader election, in worlds where calls fail, answers are lost, processes stall and people meddle."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster.candidates import LEASE, Candidate, OwnClock, World, now
from cluster.stalling import Stallable
from examples import examples
from podtide.cluster.port import ClusterError, Unavailable
from podtide.cluster.term import Term
from podtide.resources.lease import Lease
from podtide.runtime import virtual_time
from podtide.runtime.randomness import seeded_randomness

_TIME_TO_SETTLE_SECONDS = 120.0
"""The longest stall, then a call under way, a back-off and a lease to wait for."""


class RandomFaults:
    """Until `until`, calls may fail, be late, or lose their answers."""

    def __init__(self, randomness: Random, until: float) -> None:
        self._randomness = randomness
        self._until = until

    async def before(self, _call: str) -> None:
        await self._maybe()

    async def after(self, _call: str) -> None:
        await self._maybe()

    async def _maybe(self) -> None:
        if now() >= self._until:
            return
        await asyncio.sleep(self._randomness.choice([0] * 8 + [0.5, 4, 12]))
        if now() < self._until and self._randomness.random() < 0.08:
            raise Unavailable("lost")


class Trial:
    """Several candidates in a bad world, and somebody who watches that no two of them lead."""

    def __init__(self, seed: int, *, meddling: bool) -> None:
        self.randomness = seeded_randomness(seed)
        self.meddling = meddling
        self.world = World()
        self.until = 200.0
        self.candidates = [
            Candidate(
                self.world,
                f"candidate-{number}",
                RandomFaults(seeded_randomness(f"{seed}/{number}"), self.until),
                OwnClock(rate=self.randomness.uniform(0.93, 1.07)),
            )
            for number in range(3)
        ]
        self.started: list[Term] = []
        self._runs: dict[Candidate, Stallable[Any]] = {}

    async def run(self) -> None:
        if self.randomness.random() < 0.5:
            await self.world.ship_lease()
        tasks = [asyncio.create_task(self._live(candidate)) for candidate in self.candidates]
        while now() < self.until:
            await asyncio.sleep(0.1)
            self._check()
            if self.randomness.random() < 0.02:
                await self._disturb()
        while now() < self.until + _TIME_TO_SETTLE_SECONDS:
            await asyncio.sleep(0.25)
            self._check()
        assert sum(term.valid for term in self.started) == 1
        if not self.meddling:
            numbers = [term.number for term in self.started]
            assert numbers == sorted(set(numbers))
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _live(self, candidate: Candidate) -> None:
        async def lead(term: Term) -> None:
            self.started.append(term)
            self._check()
            working = self.randomness.choice([5.0, 30.0, 10**6, 10**6]) if now() < self.until else 10**6
            try:
                await asyncio.sleep(working)
            finally:
                await asyncio.sleep(self.randomness.choice([0, 0.5, 3]))

        while True:
            self._runs[candidate] = Stallable(candidate.election.run(lead))
            await self._runs[candidate]

    async def _disturb(self) -> None:
        if not self.meddling or self.randomness.random() < 0.5:
            stalled = self._runs[self.randomness.choice(self.candidates)]
            stalled.stalled_until = now() + self.randomness.choice([3, 12, 40])
            return
        holder = self.randomness.choice(["", "candidate-0", "candidate-1", "somebody"])
        with suppress(ClusterError):
            if self.randomness.random() < 0.5:
                await self.world.server.delete(Lease, LEASE.name, LEASE.namespace)
            else:
                await self.world.edit_holder(holder)

    def _check(self) -> None:
        assert sum(term.valid for term in self.started) <= 1


@pytest.mark.slow
@examples(15)
@given(st.integers(0, 2**32), st.booleans())
@example(0, True)
def test_whatever_breaks_no_two_lead_at_once_and_when_it_is_over_one_does(seed: int, meddling: bool) -> None:
    virtual_time.run(Trial(seed, meddling=meddling).run())
