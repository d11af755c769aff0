"""Which nodes may be retired in this term: those whose deletion was watched, and those that the brake lets through.

See `core.subnet.retirement_brake`. A Node that a list lacks, at the start of a term or where a watch could not be
resumed, was deleted, or etcd was restored to before it was created. The sweep finds it, and until a sweep has run it is
not retired. The same holds for a Node that no watch showed and that a NodeNetworkConfig names: a create request that
was carried out late.
"""

from collections.abc import Callable

from podtide.core.subnet.retirement_brake import HeldRetirement, judge_retirement
from podtide.runtime.clock import Clock

_UNTIL_SURVEYED_SECONDS = 1.0


class Retirement:
    """The retirements of one term. `survey_again` queues a sweep."""

    def __init__(self, clock: Clock, survey_again: Callable[[], None]) -> None:
        self._clock = clock
        self._survey_again = survey_again
        self._watched: set[str] = set()
        self._confirmed: set[str] = set()
        self._asked: set[str] = set()
        """Uids of Nodes that a fresh read showed to be deleted, and whose retirement waits for the next sweep."""
        self._held: HeldRetirement | None = None
        self._is_surveyed = False

    @property
    def held(self) -> frozenset[str]:
        """The uids of Nodes whose retirement waits for a second sweep."""
        return self._held.missing if self._held else frozenset()

    @property
    def look_again_in_seconds(self) -> float | None:
        """In how many seconds the second sweep is due; None if no retirement waits for one."""
        return None if self._held is None else max(0.0, self._held.until - self._clock.monotonic())

    def note_present(self, uid: str) -> None:
        """Note that the Node exists: whatever was known of its deletion was of another history."""
        self._watched.discard(uid)
        self._confirmed.discard(uid)
        self._asked.discard(uid)

    def note_watched_deletion(self, uid: str) -> None:
        """Note that a watch showed the deletion of the Node: it is retired, however many others are."""
        self._watched.add(uid)

    def survey(self, known: frozenset[str], present: frozenset[str]) -> frozenset[str]:
        """Judge all nodes that have something (`known`), by uid. Returns those that may be retired now.

        A node that was retired already may have something again where the allocator's database was restored.
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
        """How long the retirement of these deleted Nodes has to wait; None if all of them may be retired now."""
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
