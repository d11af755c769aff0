"""The reactive pool of Azure CNS, version 1: one batch more or less at a time, and where that comes to rest.

It steps from its last request when too little or too much is free, and waits for the grant before it can judge again. So a
burst takes as many round trips as batches. A step ends at a multiple of the batch: from a request in between (the node's
limit, another batch, an edit out of band) it is a short one, and takes a round trip all the same. What the program does
with odd parameters is done here too: it takes a buffer of 1 % to 100 %, and no batch above the node's limit. Two things are
not as there: fractions are exact, and a request does not go below 0.

A request is at rest while m ≤ free < M. As M = m + B, exactly one multiple of the batch is. The node's limit is another
request at which the pool can rest, though it is no multiple: a pool that was driven to it stays there while free < M. So
next to the limit, where the pool rests depends on its history.
"""

from fractions import Fraction

from msgspec import Struct

from podtide.core.subnet.scaler import Scaler

_HALF = Fraction(1, 2)
_LEAST_BUFFER = Fraction(1, 100)
_MOST_BUFFER = Fraction(1)


class ReactivePool(Struct, frozen=True):
    """The counts that the reactive monitor decides from."""

    requested: int
    held: int
    assigned: int
    releasing: int = 0


class RestingRequest(Struct, frozen=True):
    """The least and the most that a reactive pool can rest at: they differ where its history decides."""

    least: int
    most: int


def decide_reactive_request(pool: ReactivePool, scaler: Scaler) -> int:
    """The next request: up or down to the next multiple of the batch, or the same.

    Growth depends on what will be free once the request is granted, shrinking on what is free now.
    """
    taken = _as_taken(scaler)
    beyond = pool.requested % taken.batch
    if pool.requested - pool.assigned < _half_up(taken.minimum_free):
        return min(pool.requested - beyond + taken.batch, taken.max_ips)
    if pool.held - pool.assigned - pool.releasing >= _half_up(taken.maximum_free):
        return max(pool.requested - (beyond or taken.batch), 0)
    return pool.requested


def resting_request(assigned: int, scaler: Scaler) -> RestingRequest:
    """The requests at which a pool with so many assigned addresses makes no further step, all being granted."""
    taken = _as_taken(scaler)
    multiple = taken.batch * -(-(assigned + _half_up(taken.minimum_free)) // taken.batch)
    rests_at_limit = taken.max_ips - assigned < _half_up(taken.maximum_free)
    return RestingRequest(
        least=min(multiple, taken.max_ips), most=taken.max_ips if rests_at_limit else multiple
    )


def _as_taken(scaler: Scaler) -> Scaler:
    """The parameters, clamped to the program's bounds."""
    return Scaler(
        batch=min(scaler.batch, scaler.max_ips),
        buffer=min(max(scaler.buffer, _LEAST_BUFFER), _MOST_BUFFER),
        max_ips=scaler.max_ips,
    )


def _half_up(free: Fraction) -> int:
    return int(free + _HALF)
