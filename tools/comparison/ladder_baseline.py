"""The baseline: the batch as podtide decided it before, one rung at a time, for comparison only.

    starved     somebody is owed an address and none is left    batch 1, buffer 0
    exhausted   R went over T·Q                                 batch 1, buffer 1
    otherwise   one rung down while R > t·Q; one up when R stays under t·Q even if every node needs its worst case

On the way down it overshot, because a rung was judged before nodes had given anything back. On the way up the worst case
of every node closed the way wherever Q/N is small: with 33 addresses per node or fewer, even without pods. `batch`
replaces it; the comparison shows by how much.
"""

from math import ceil

from podtide.core.exact import text
from podtide.core.subnet.batch import (
    STARVED,
    BatchDelays,
    BatchInForce,
    BatchMove,
    SubnetDecision,
    SubnetReading,
)
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.count_text import are_text
from podtide.core.subnet.exhaustion import judge_exhaustion
from podtide.core.subnet.scaler import EXHAUSTED_BATCH, EXHAUSTED_BUFFER, SubnetScaler

_PRIMARIES = 1
_DWELL_SECONDS = 30.0
"""Between two changes."""


def decide_by_ladder(
    standing: BatchInForce, reading: SubnetReading, bounds: BatchBounds, delays: BatchDelays | None = None
) -> SubnetDecision:
    """The batch in force from now on, by the earlier policy (see `core.subnet.batch.decide_batch` for the present one)."""
    del delays  # it had a time of its own, and did not wait for answers
    exhaustion = judge_exhaustion(
        exhausted=standing.exhausted,
        reserved=reading.reserved,
        capacity=reading.capacity,
        thresholds=bounds.thresholds,
    )
    rungs = bounds.rungs
    dwelt = not 0 <= standing.age_seconds < _DWELL_SECONDS
    starved = _is_starved(standing, reading, dwelt=dwelt)
    before = standing.scaler or rungs[-1]
    if starved:
        scaler, reason = (
            STARVED,
            f"{are_text(reading.owed, 'address', 'addresses')} owed, {are_text(reading.free)} free",
        )
    elif exhaustion.exhausted:
        scaler, reason = SubnetScaler(EXHAUSTED_BATCH, EXHAUSTED_BUFFER), exhaustion.comparison
    elif standing.starved or standing.exhausted:
        scaler, reason = rungs[0], exhaustion.comparison
    else:
        scaler, reason = (
            _one_rung(before, reading, bounds) if dwelt else (before, "the last change is too recent")
        )
    return SubnetDecision(
        scaler=scaler,
        exhausted=exhaustion.exhausted,
        starved=starved,
        step=_step(before, scaler),
        reason=reason,
        exhaustion=exhaustion,
    )


def expected_at_most(reading: SubnetReading, now: SubnetScaler, then: SubnetScaler) -> int:
    """The upper bound of R at a larger batch that closed the way up: every container at its worst case."""
    return reading.reserved + reading.owed + reading.containers * (_most_spare(then) - _least_spare(now))


def _is_starved(standing: BatchInForce, reading: SubnetReading, *, dwelt: bool) -> bool:
    if not standing.starved:
        return reading.owed > 0 and reading.free == 0
    return not (dwelt and reading.owed == 0 and reading.free >= reading.containers)


def _one_rung(before: SubnetScaler, reading: SubnetReading, bounds: BatchBounds) -> tuple[SubnetScaler, str]:
    limit = bounds.thresholds.lower * reading.capacity
    larger = [rung for rung in bounds.rungs if rung.batch > before.batch]
    smaller = [rung for rung in bounds.rungs if rung.batch < before.batch]
    if reading.reserved > limit and smaller:
        return smaller[-1], f"R = {reading.reserved} > t·Q = {text(limit)}"
    if reading.reserved <= limit and larger:
        expected = expected_at_most(reading, before, larger[0])
        if expected < limit:
            return larger[0], f"R stays at {expected} or less, under t·Q = {text(limit)}"
    return before, f"R = {reading.reserved}, t·Q = {text(limit)}"


def _least_spare(rung: SubnetScaler) -> int:
    """What a container holds at least beyond its pods, its primary among it."""
    return max(ceil(rung.buffer * rung.batch), _PRIMARIES + (1 if rung.buffer > 0 else 0))


def _most_spare(rung: SubnetScaler) -> int:
    """What a container holds at most beyond its pods, its primary among it."""
    floor = _PRIMARIES + (1 if rung.buffer > 0 else 0)
    return max(ceil(rung.buffer * rung.batch) + rung.batch - 1, floor)


def _step(before: SubnetScaler, now: SubnetScaler) -> BatchMove:
    if before == now:
        return BatchMove.NONE
    return BatchMove.UP if (now.batch, now.buffer) > (before.batch, before.buffer) else BatchMove.DOWN
