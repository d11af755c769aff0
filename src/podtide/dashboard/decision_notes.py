"""Decisions as they are noted: numbered, dated, and so many at once at most.

All nodes of a cluster may ask in the same moment, after a restart or a new batch. The page remembers the latest decisions only, and
those would push everything else out.
"""

from collections.abc import Callable

from podtide.dashboard.decisions import DecisionDraft
from podtide.dashboard.records import DecisionRecord
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock

_AT_ONCE = 25
"""So many are noted of what is published together."""


class DecisionNotes:
    """Makes records of decisions, and hands them to `remember`."""

    def __init__(self, clock: Clock, remember: Callable[[DecisionRecord], None]) -> None:
        self._clock = clock
        self._remember = remember
        self._last = 0
        self._now = 0

    def note(self, draft: DecisionDraft) -> None:
        """Note a decision, unless there are too many at once."""
        self._now += 1
        if self._now <= _AT_ONCE:
            self._put(draft)

    def end_round(self) -> None:
        """What was noted is published: say how many more there were."""
        if self._now > _AT_ONCE:
            self._put(DecisionDraft("more", "", f"and {self._now - _AT_ONCE} more at the same time"))
        self._now = 0

    def _put(self, draft: DecisionDraft) -> None:
        self._last += 1
        self._remember(
            DecisionRecord(
                id=self._last,
                time=to_time(self._clock.wall()),
                kind=draft.kind,
                subject=draft.subject,
                text=draft.text,
                terms=draft.terms,
                formula=draft.formula,
            )
        )
