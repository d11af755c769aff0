"""The baseline: the reactive pool of Azure CNS v1, one batch at a time, for comparison only.

It steps from its last request when too little or too much is free, and waits for the grant before it can judge
again. So a burst takes as many round trips as batches. A step ends at a multiple of the batch: from a request in
between (the node's limit, another batch, an edit out of band) it is a short one, and takes a round trip all the same.
`scaling` replaces it; the planner and the benchmarks show by how much.

What the program does with odd parameters is done here too: it takes a buffer of 1 % to 100 %, and no
batch above the node's limit. Two things are not as there: fractions are exact, and a request does not go below 0.
"""

from fractions import Fraction

from msgspec import Struct

from podtide.core.subnet.scaler import Scaler

_HALF = Fraction(1, 2)
_LEAST_BUFFER = Fraction(1, 100)
_MOST_BUFFER = Fraction(1)


class ReactivePool(Struct, frozen=True):
    """What the reactive monitor looks at."""

    requested: int
    held: int
    assigned: int
    releasing: int = 0


def decide_reactive_request(pool: ReactivePool, scaler: Scaler) -> int:
    """The next request: up or down to the next multiple of the batch, or the same.

    Growth goes by what will be free once the request is granted, shrinking by what is free now.
    """
    taken = _as_taken(scaler)
    beyond = pool.requested % taken.batch
    if pool.requested - pool.assigned < _half_up(taken.minimum_free):
        return min(pool.requested - beyond + taken.batch, taken.max_ips)
    if pool.held - pool.assigned - pool.releasing >= _half_up(taken.maximum_free):
        return max(pool.requested - (beyond or taken.batch), 0)
    return pool.requested


def _as_taken(scaler: Scaler) -> Scaler:
    """The parameters within the program's bounds."""
    return Scaler(
        batch=min(scaler.batch, scaler.max_ips),
        buffer=min(max(scaler.buffer, _LEAST_BUFFER), _MOST_BUFFER),
        max_ips=scaler.max_ips,
    )


def _half_up(free: Fraction) -> int:
    return int(free + _HALF)
