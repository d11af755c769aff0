"""The invariants, checked again and again while a simulated cluster is at work.

A violation that heals by itself is one all the same, so it is not enough to look at the end. There are two ways:

    look     what the book found (see `address_book`), which is told of every change: costs next to nothing
    check    all there is, read anew from the allocator, the agents and the machines, and held against the last time

The book could be wrong as well as the programs, so `look` lets `check` follow now and then: after about as many steps
as there are addresses, which makes its share of a step small however large the cluster. Where nothing happens nothing
is looked at: hours in which a simulated cluster is idle cost nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import NoReturn, Protocol

from podtide.core.audit.invariants import Picture, Violation, audit, audit_change
from podtide.core.errors import StopError
from podtide.simulation.trace import Trace

_FEWEST_STEPS = 50


class InvariantBroken(StopError):
    """The audit found something. The words are its own."""


class Audited(Protocol):
    """What the auditor looks at."""

    @property
    def findings(self) -> Sequence[Violation]:
        """What the book found."""
        ...

    async def counts_add_up(self) -> bool:
        """Whether the subnets' counts and the book agree, at a glance."""
        ...

    async def picture(self) -> Picture:
        """All there is."""
        ...

    async def is_of_the_past(self) -> bool:
        """Whether the allocator went back and grants nothing: what it says is of another day."""
        ...

    async def audit_database(self) -> tuple[Violation, ...]:
        """What is wrong with the allocator's database."""
        ...


class Auditor:
    """Compares each picture with itself and with the one before."""

    def __init__(self, audited: Audited, trace: Trace) -> None:
        self.audits = 0
        self._audited = audited
        self._trace = trace
        self._before: Picture | None = None
        self._steps_to_check = _FEWEST_STEPS

    async def look(self) -> None:
        """InvariantBroken if a step has broken anything. To be called after every one."""
        self._raise(self._audited.findings)
        self._steps_to_check -= 1
        if self._steps_to_check <= 0 or not await self._audited.counts_add_up():
            await self.check()

    async def check(self) -> None:
        """InvariantBroken unless everything fits together now, and came about as it may.

        An allocator that went back is no witness until it has recovered; the book still is.
        """
        if await self._audited.is_of_the_past():
            self._before, self._steps_to_check = None, _FEWEST_STEPS
            self._raise(self._audited.findings)
            return
        picture = await self._audited.picture()
        violations = (*self._audited.findings, *audit(picture), *await self._audited.audit_database())
        if self._before is not None:
            violations += audit_change(self._before, picture)
        self._before = picture
        self.audits += 1
        addresses = sum(1 + len(grant.addresses) for grant in picture.grants)  # with each node's primary one
        self._steps_to_check = max(_FEWEST_STEPS, addresses)
        self._raise(violations)

    def begin_anew(self) -> None:
        """What was so before is not to be held against what is: a store went back since. The book is told of every change."""
        self._before = None

    async def run(self, every_seconds: float) -> NoReturn:
        """Check after whatever happened, until something is wrong."""
        seen = -1
        while True:
            if (happened := self._trace.noted) > seen:
                await self.check()
                seen = happened
            await asyncio.sleep(every_seconds)

    async def attend(self) -> NoReturn:
        """Look after every step, until something is wrong."""
        stepped = asyncio.Event()
        self._trace.listeners.append(lambda _entry: stepped.set())
        while True:
            await stepped.wait()
            stepped.clear()
            await self.look()

    def _raise(self, violations: Sequence[Violation]) -> None:
        if violations:
            raise InvariantBroken("; ".join(map(str, violations)))
