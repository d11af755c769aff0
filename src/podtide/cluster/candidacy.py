"""What one candidate remembers of a Lease, and whether it may take it. Decides only; `leader_election` acts."""

from podtide.cluster.lease_record import LeaseClaim, ObservedLease, see
from podtide.resources.lease import LeaseSpec
from podtide.resources.timestamps import to_micro_time


class Candidacy:
    """One candidate's view of the Lease. Times are of its own monotonic clock, but for `wall_seconds`."""

    def __init__(self, identity: str, lease_seconds: float) -> None:
        self.highest_number = 0
        """Of all terms ever seen: the next is higher, also when the Lease was deleted or edited in between."""
        self._identity = identity
        self._lease_seconds = lease_seconds
        self._sighting: ObservedLease | None = None
        self._claim: LeaseClaim | None = None
        self._claimed_version = ""
        self._ended_claim: LeaseClaim | None = None

    @property
    def claim_sent(self) -> LeaseClaim | None:
        """The claim that was to be written last and is not given up: the Lease may show it by now."""
        return self._claim

    def claim(self, spec: LeaseSpec, version: str, now: float, wall_seconds: float) -> LeaseClaim | None:
        """The claim to write over this version of the Lease; None as long as another candidate holds it.

        `now` is when the answer that showed the Lease had arrived.
        """
        self._sighting = see(self._sighting, spec, version, now)
        self.highest_number = max(self.highest_number, spec.lease_transitions)
        if self._claim is not None and self._claim.holds(spec):
            return self._claim  # an attempt whose answer was lost has taken effect
        ended = self._ended_claim is not None and self._ended_claim.holds(spec)
        if not ended and now < self._sighting.free_at(self._lease_seconds):
            self._claim = None
        elif self._claim is None or self._claimed_version != version:
            self._claim = LeaseClaim(self._identity, self.highest_number + 1, to_micro_time(wall_seconds))
            self._claimed_version = version
        # Else an attempt on this very version may still be under way: the same claim again, so that it counts as ours.
        return self._claim

    def end_term(self) -> None:
        """Record that our term is over and its work has stopped: the Lease of that term need not expire first."""
        self._ended_claim, self._claim = self._claim, None
        if self._ended_claim is not None:
            self.highest_number = max(self.highest_number, self._ended_claim.number)
