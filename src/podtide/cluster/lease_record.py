"""What a candidate may conclude from a Lease, and what it writes into one. Pure: the time is an argument.

Two rules make it safe, whatever the clocks of the machines say:

- A holder's time runs from before it sent its last answered write, by its own clock. The wait of every other candidate runs
  from after it saw the Lease change, by its own clock. The wait is longer, so it ends after the holder's time.
- Every take-over and renewal replaces exactly the version that was read. So a Lease that stayed the same was not
  renewed, and a write that arrives late, or whose answer was lost, either is what all others see or had no effect.

A holder is known by its claim: identity, number of the term and time of acquisition. A Lease that shows our identity
and was not written by us (somebody edited it) is therefore not mistaken for our own.
"""

from math import ceil

from msgspec import Struct, structs

from podtide.resources.lease import LeaseSpec
from podtide.resources.timestamps import to_micro_time

_RELEASED_SECONDS = 1
"""The duration of a released Lease, as client-go leaves it. A holder that was edited away leaves its own duration
behind, and that tells the two apart: only the first may be taken at once, for the other still leads."""

_NUDGE_SECONDS = 0.000_002
"""One microsecond more might be rounded away: a float of today's time is good to a quarter of one."""


class LeaseClaim(Struct, frozen=True):
    """One hold of a Lease by one candidate, for one term."""

    identity: str
    number: int
    acquired: str

    def holds(self, spec: LeaseSpec) -> bool:
        """Whether the Lease shows this claim."""
        return self == LeaseClaim(spec.holder_identity, spec.lease_transitions, spec.acquire_time or "")


class ObservedLease(Struct, frozen=True):
    """A Lease as last read, and since when (by our clock) it is unchanged."""

    spec: LeaseSpec
    version: str
    since: float

    def free_at(self, lease_seconds: float) -> float:
        """When it may be taken over if it does not change: at once if it was released, else when it ran out.

        The holder's own duration counts if it is longer than ours: it may have been started with other settings.
        """
        if not self.spec.holder_identity and self.spec.lease_duration_seconds == _RELEASED_SECONDS:
            return self.since
        return self.since + max(lease_seconds, self.spec.lease_duration_seconds or 0)


def see(before: ObservedLease | None, spec: LeaseSpec, version: str, now: float) -> ObservedLease:
    """The observation after reading the Lease; `now` is when the answer had arrived.

    Content counts together with the version: a cluster restored from a backup uses versions again.
    """
    if before is not None and (before.version, before.spec) == (version, spec):
        return before
    return ObservedLease(spec, version, now)


def held(before: LeaseSpec, claim: LeaseClaim, lease_seconds: float, wall_seconds: float) -> LeaseSpec:
    """The Lease as `claim` takes or renews it.

    The time of renewal always differs from the last one, however the wall clock jumps or stands: a write that changes
    nothing would look like no renewal at all.
    """
    renewed = to_micro_time(wall_seconds)
    if renewed == before.renew_time:
        renewed = to_micro_time(wall_seconds + _NUDGE_SECONDS)
    return LeaseSpec(
        holder_identity=claim.identity,
        lease_duration_seconds=max(ceil(lease_seconds), _RELEASED_SECONDS + 1),
        acquire_time=claim.acquired,
        renew_time=renewed,
        lease_transitions=claim.number,
    )


def released(before: LeaseSpec) -> LeaseSpec:
    """The Lease as its holder releases it; the term's number stays, so that the next one is higher."""
    return structs.replace(before, holder_identity="", lease_duration_seconds=_RELEASED_SECONDS)
