"""The invariants, checked again and again while a simulated cluster is at work.

A violation that heals by itself is one all the same, so it is not enough to look at the end. Whoever runs the auditor
beside the programs hears of the first violation soon after it came about. Where nothing happens nothing is looked at:
hours in which a simulated cluster is idle cost nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from podtide.core.audit import Picture, Violation, audit, audit_change
from podtide.core.errors import StopError
from podtide.simulation.trace import Trace


class InvariantBroken(StopError):
    """The audit found something. The words are its own."""


class Auditor:
    """Compares each picture with itself and with the one before."""

    def __init__(
        self,
        take_picture: Callable[[], Awaitable[Picture]],
        audit_database: Callable[[], Awaitable[tuple[Violation, ...]]],
        trace: Trace,
    ) -> None:
        self.audits = 0
        self._take_picture = take_picture
        self._audit_database = audit_database
        self._trace = trace
        self._before: Picture | None = None

    async def check(self) -> None:
        """InvariantBroken unless everything fits together now, and came about as it may."""
        picture = await self._take_picture()
        violations = (*audit(picture), *await self._audit_database())
        if self._before is not None:
            violations += audit_change(self._before, picture)
        self._before = picture
        self.audits += 1
        if violations:
            raise InvariantBroken("; ".join(map(str, violations)))

    async def run(self, every_seconds: float) -> NoReturn:
        """Check after whatever happened, until something is wrong."""
        seen = -1
        while True:
            if (happened := len(self._trace.entries)) > seen:
                await self.check()
                seen = happened
            await asyncio.sleep(every_seconds)
