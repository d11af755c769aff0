"""Which nodes may be retired in this term: those whose deletion was watched, and those that the brake lets through.

See `core.subnet.retirement_brake`. What a list lacks, at the start of a term or where a watch could not be resumed, may have been
deleted or be of a time that the cluster went back to: it is found by the sweep, and until that was made, it is not
retired. So is a Node that nobody saw and that a NodeNetworkConfig names: one that was asked for long ago, whose
creation was carried out only now.
"""

from collections.abc import Callable

from podtide.core.subnet.retirement_brake import HeldRetirement, judge_retirement
from podtide.runtime.clock import Clock

_UNTIL_SURVEYED_SECONDS = 1.0


class Retirement:
    """One term's. `survey_again` has a survey made soon."""

    def __init__(self, clock: Clock, survey_again: Callable[[], None]) -> None:
        self._clock = clock
        self._survey_again = survey_again
        self._watched: set[str] = set()
        self._confirmed: set[str] = set()
        self._asked: set[str] = set()
        """Those of which somebody waits to hear, and a fresh read showed that they are gone."""
        self._held: HeldRetirement | None = None
        self._is_surveyed = False

    @property
    def held(self) -> frozenset[str]:
        """The uids of Nodes whose retirement waits for a second look."""
        return self._held.missing if self._held else frozenset()

    @property
    def look_again_in_seconds(self) -> float | None:
        """When the second look is due; None when nobody waits for one."""
        return None if self._held is None else max(0.0, self._held.until - self._clock.monotonic())

    def see(self, uid: str) -> None:
        """The Node is there: whatever was known of its end was of another history."""
        self._watched.discard(uid)
        self._confirmed.discard(uid)
        self._asked.discard(uid)

    def watched_to_its_end(self, uid: str) -> None:
        """The Node was deleted, as a watch told: it is retired, however many others are."""
        self._watched.add(uid)

    def survey(self, known: frozenset[str], present: frozenset[str]) -> frozenset[str]:
        """Judge all nodes that have something, of which some are present, by uid: those that may be retired now.

        One that may be retired and was may have something again, where the allocator's store went back.
        """
        missing = known - (present - self._asked)
        allowed = missing & (self._watched | self._confirmed)
        judgement = judge_retirement(missing - allowed, len(known), self._clock.monotonic(), self._held)
        self._held = judgement.held
        # Who has nothing has nothing to lose.
        self._confirmed |= judgement.retire | (self._asked - known)
        self._asked.clear()
        self._is_surveyed = True
        return judgement.retire | allowed

    def wait_seconds(self, uids: frozenset[str]) -> float | None:
        """How long the retirement of these has to wait; None when all of them may be retired. A fresh read says they are gone."""
        waiting = uids - self._watched - self._confirmed
        if not waiting:
            return None
        self._asked |= waiting
        if not self._is_surveyed:
            return _UNTIL_SURVEYED_SECONDS
        if self._held is None:
            self._survey_again()  # one of them was not there to be judged
            return _UNTIL_SURVEYED_SECONDS
        return max(_UNTIL_SURVEYED_SECONDS, self.look_again_in_seconds or 0.0)
