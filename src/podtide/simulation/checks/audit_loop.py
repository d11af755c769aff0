"""The invariants, checked repeatedly while a simulated cluster runs.

A violation that heals by itself still counts, so a check at the end is not enough. There are two ways:

    look     takes the findings of the book (see `address_book`), which sees every change: costs next to nothing
    check    reads the allocator, the agents and the machines anew, and compares them with the last time

The book could be wrong as well as the programs, so `look` runs a `check` now and then: after about as many steps as there
are addresses, which makes its share of a step small however large the cluster. Where nothing happens nothing is checked:
hours in which a simulated cluster is idle cost nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import NoReturn, Protocol

from podtide.core.audit.invariants import Picture, Violation, audit, audit_change
from podtide.core.errors import StopError
from podtide.simulation.trace import Trace

_FEWEST_STEPS = 50


class InvariantBroken(StopError):
    """The audit found a violation, which the message describes."""


class Audited(Protocol):
    """What the auditor reads."""

    @property
    def findings(self) -> Sequence[Violation]:
        """The violations that the book found."""
        ...

    async def counts_add_up(self) -> bool:
        """Whether the subnets' counts and the book agree."""
        ...

    async def picture(self) -> Picture:
        """The addresses as allocator, agents and machines have them."""
        ...

    async def is_of_the_past(self) -> bool:
        """Whether the allocator was restored from a backup and still recovers: its data is outdated."""
        ...

    async def audit_database(self) -> tuple[Violation, ...]:
        """The violations in the allocator's database."""
        ...


class Auditor:
    """Checks each picture by itself and against the one before."""

    def __init__(self, audited: Audited, trace: Trace) -> None:
        self.audits = 0
        self._audited = audited
        self._trace = trace
        self._before: Picture | None = None
        self._steps_to_check = _FEWEST_STEPS

    async def look(self) -> None:
        """Raise InvariantBroken if a step broke an invariant. To be called after every step."""
        self._raise(self._audited.findings)
        self._steps_to_check -= 1
        if self._steps_to_check <= 0 or not await self._audited.counts_add_up():
            await self.check()

    async def check(self) -> None:
        """Raise InvariantBroken unless all invariants hold now, and held for the changes since the last check.

        A restored allocator is left out until it has recovered; the book is not.
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
        """Forget the last picture: a store was restored since, so changes cannot be judged. The book still sees every change."""
        self._before = None

    async def run(self, every_seconds: float) -> NoReturn:
        """Check at intervals if anything happened, until an invariant is broken."""
        seen = -1
        while True:
            if (happened := self._trace.noted) > seen:
                await self.check()
                seen = happened
            await asyncio.sleep(every_seconds)

    def _raise(self, violations: Sequence[Violation]) -> None:
        if violations:
            raise InvariantBroken("; ".join(map(str, violations)))
