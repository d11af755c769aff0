"""The Lease of the request controllers, and what it says of who leads. No I/O."""

from msgspec import Struct

from podtide.cluster.served.ages import age
from podtide.resources.base import Key
from podtide.resources.lease import LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds

LEASE = Key(SYSTEM_NAMESPACE, "podtide-controller")
"""The Lease of the leader."""


class LeaderState(Struct, frozen=True):
    """Whether a request controller leads, as far as its Lease tells."""

    obstacle: str = ""
    """Why none seems to lead; "" if one does, or if it cannot be known."""


def leader_in(spec: LeaseSpec, now: float) -> LeaderState:
    """What a Lease says at a time; clocks of machines are assumed to agree within its duration."""
    if not spec.holder_identity:
        return _obstacle("was given up, and none has taken it")
    try:
        silent = now - to_wall_seconds(spec.renew_time or "")
    except InvalidTimestamp:
        return LeaderState()
    if silent <= 2 * (spec.lease_duration_seconds or 0):
        return LeaderState()
    return _obstacle(f"was last renewed {age(silent)} ago, by {spec.holder_identity}")


def _obstacle(words: str) -> LeaderState:
    return LeaderState(
        f"no request controller leads (Lease {LEASE} {words}): start `podtide controller`, or see the log of the one that runs"
    )


NEVER_LED = _obstacle("is not there: none was ever started")
"""What it means that there is no Lease."""
