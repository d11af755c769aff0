"""The baseline: the reactive pool of today's CNS, one batch at a time, for comparison only.

It steps from its last request when too little or too much is free, and waits for the grant before it can judge
again. So a burst takes as many round trips as batches, and a request that was edited out of band stays misaligned
for ever. `scaling` replaces it; the planner and the benchmarks show by how much.
"""

from fractions import Fraction

from msgspec import Struct

from podtide.core.scaler import Scaler

_HALF = Fraction(1, 2)


class ReactivePool(Struct, frozen=True):
    """What the reactive monitor looks at."""

    requested: int
    held: int
    assigned: int
    releasing: int = 0


def decide_reactive_request(pool: ReactivePool, scaler: Scaler) -> int:
    """The next request: one batch more, one batch less, or the same."""
    least_free = int(scaler.minimum_free + _HALF)
    most_free = int(scaler.maximum_free + _HALF)
    expected_free = pool.requested - pool.assigned
    free = pool.held - pool.assigned - pool.releasing
    if expected_free < least_free:
        return min(pool.requested + scaler.batch, scaler.max_ips)
    if free >= most_free:
        return max(pool.requested - scaler.batch, 0)
    return pool.requested
