"""Which nodes may be retired in this term: those whose Node was seen in it, and those that the brake lets through.

See `core.retirement`. What is missing at the start of a term is found by the sweep; until that was made, nobody is
retired but whose deletion was watched. Later a NodeNetworkConfig can come that names a Node nobody saw: one that was
asked for long ago, whose creation was carried out only now. Then the sweep is made again, and the brake judges it.
"""

from collections.abc import Callable

from podtide.core.retirement import HeldRetirement, judge_retirement
from podtide.runtime.clock import Clock

_UNTIL_SURVEYED_SECONDS = 1.0


class Retirement:
    """One term's. `survey_again` has a survey made soon."""

    def __init__(self, clock: Clock, survey_again: Callable[[], None]) -> None:
        self._clock = clock
        self._survey_again = survey_again
        self._seen: set[str] = set()
        self._confirmed: set[str] = set()
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
        """The Node is there in this term: if it goes, that is watched."""
        self._seen.add(uid)

    def survey(self, known: frozenset[str], present: frozenset[str]) -> frozenset[str]:
        """Judge all nodes that have something, of which some are present, by uid: those that may be retired now.

        One that was seen in this term and is gone may have something again, where the allocator's store went back.
        """
        missing = known - present
        judgement = judge_retirement(missing - self._seen, len(known), self._clock.monotonic(), self._held)
        self._held = judgement.held
        self._confirmed |= judgement.retire
        self._is_surveyed = True
        return judgement.retire | missing & self._seen

    def wait_seconds(self, uids: frozenset[str]) -> float | None:
        """How long the retirement of these has to wait; None when all of them may be retired."""
        if uids <= self._seen | self._confirmed:
            return None
        if not self._is_surveyed:
            return _UNTIL_SURVEYED_SECONDS
        if self._held is None:
            self._survey_again()  # one of them was not there to be judged
            return _UNTIL_SURVEYED_SECONDS
        return max(_UNTIL_SURVEYED_SECONDS, self.look_again_in_seconds or 0.0)
