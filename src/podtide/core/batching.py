"""Which batch and buffer are in force for a subnet: the one place that decides it for all of its nodes.

    starved     somebody is owed an address and none is left    batch 1, buffer 0
    exhausted   R went over T·Q                                 batch 1, buffer 1
    otherwise   a rung of a ladder of powers of two up to the configured batch

The ladder works below the upper threshold, so that exhaustion is the last resort: one rung down while R > t·Q, one up
only when an upper bound of the R to expect at the larger batch stays under t·Q, and one rung per dwell. That bound is
why constant load never oscillates: a step up cannot bring about the step down that would undo it.

Starved ends only when as many addresses are free as there are containers, for then each of them can take back the one
it keeps when exhausted, and nobody is owed again.

The lowest rung takes from the subnet what exhaustion does (its buffer is at most 1), so leaving exhaustion for it
cannot bring exhaustion back. The position is counted in rungs below the configured batch: an override of the batch is
then in force at once where the subnet is at ease, and keeps its distance where it is not.
"""

from enum import StrEnum
from fractions import Fraction
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidThresholds
from podtide.core.exact import text
from podtide.core.exhaustion import Exhaustion, Thresholds, judge_exhaustion
from podtide.core.scaler import (
    DEFAULT_BATCH,
    DEFAULT_MIN_FREE,
    EXHAUSTED_BATCH,
    EXHAUSTED_BUFFER,
    STARVED_BUFFER,
    Scaler,
    SubnetScaler,
)

_PRIMARIES = 1
"""Every network container holds one primary address, and R counts it."""


class Batching(Struct, frozen=True):
    """How a subnet is configured: the default, or the override in ClusterSubnet spec."""

    batch: int = DEFAULT_BATCH
    buffer: Fraction = DEFAULT_MIN_FREE
    thresholds: Thresholds = Thresholds()
    dwell_seconds: float = 30.0

    def __post_init__(self) -> None:
        Scaler(self.batch, self.buffer)  # what no node's pool can be sized by, no subnet may put in force


class Reading(Struct, frozen=True):
    """What is known of a subnet at one instant."""

    capacity: int
    reserved: int
    containers: int
    owed: int = 0

    def __post_init__(self) -> None:
        for name in ("containers", "owed"):
            if getattr(self, name) < 0:
                raise InvalidThresholds(f"{name} {getattr(self, name)} is negative: it is a count, 0 or more")

    @property
    def free(self) -> int:
        """Addresses nobody holds."""
        return max(0, self.capacity - self.reserved)


class Standing(Struct, frozen=True):
    """What is in force, and since when. `depth` is how many rungs below the configured batch."""

    exhausted: bool = False
    starved: bool = False
    depth: int = 0
    since: float = 0.0


class Step(StrEnum):
    """What moved, in the words of an Event's reason."""

    STARVED = "Starved"
    FED = "Fed"
    EXHAUSTED = "Exhausted"
    RECOVERED = "Recovered"
    DOWN = "BatchReduced"
    UP = "BatchRaised"
    NONE = "Unchanged"


class SubnetDecision(Struct, frozen=True):
    """The next standing and the scaler it puts in force, with the terms that decided."""

    standing: Standing
    scaler: SubnetScaler
    step: Step
    exhaustion: Exhaustion
    reason: str

    def __str__(self) -> str:
        return f"batch {self.scaler.batch}, buffer {text(self.scaler.buffer)} ({self.step}): {self.reason}"


def ladder(configured: Batching) -> tuple[SubnetScaler, ...]:
    """The rungs, the configured batch first and batch 1 last."""
    top = SubnetScaler(configured.batch, configured.buffer)
    lowest = SubnetScaler(EXHAUSTED_BATCH, min(configured.buffer, EXHAUSTED_BUFFER))
    rungs = [top]
    power = 1 << (configured.batch - 1).bit_length()
    while (power := power // 2) > 1:
        rungs.append(SubnetScaler(power, configured.buffer))
    if lowest != top:
        rungs.append(lowest)
    return tuple(rungs)


def depth_of(in_force: SubnetScaler, configured: Batching) -> int:
    """Where a scaler found in force stands: the first rung that is no larger. For a controller that starts."""
    rungs = ladder(configured)
    found = (in_force.batch, in_force.buffer)
    return next(
        (depth for depth, rung in enumerate(rungs) if (rung.batch, rung.buffer) <= found), len(rungs) - 1
    )


def _least_spare(rung: SubnetScaler) -> int:
    """What a container holds at least beyond its pods, its primary among it."""
    floor = _PRIMARIES + (1 if rung.buffer > 0 else 0)
    return max(ceil(rung.buffer * rung.batch), floor)


def _most_spare(rung: SubnetScaler) -> int:
    """What a container holds at most beyond its pods, its primary among it."""
    floor = _PRIMARIES + (1 if rung.buffer > 0 else 0)
    return max(ceil(rung.buffer * rung.batch) + rung.batch - 1, floor)


def expected_at_most(reading: Reading, now: SubnetScaler, then: SubnetScaler) -> int:
    """An upper bound of R once every node has gone from one rung to a larger one, its pods unchanged.

    Every container holds at least `_least_spare(now)` beyond its pods today and will hold at most
    `_most_spare(then)`; what is owed will be taken as well.
    """
    return reading.reserved + reading.owed + reading.containers * (_most_spare(then) - _least_spare(now))


def decide_batch(standing: Standing, reading: Reading, configured: Batching, now: float) -> SubnetDecision:
    """What is in force for the subnet from now on."""
    exhaustion = judge_exhaustion(
        exhausted=standing.exhausted,
        reserved=reading.reserved,
        capacity=reading.capacity,
        thresholds=configured.thresholds,
    )
    rungs = ladder(configured)
    lowest = len(rungs) - 1
    depth = min(standing.depth, lowest)
    dwelt = now - standing.since >= configured.dwell_seconds
    starved = _is_starved(standing, reading, dwelt=dwelt)

    if starved or exhaustion.exhausted or standing.starved or standing.exhausted:
        step, reason = _step_at_the_bottom(standing, reading, exhaustion, starved=starved)
        depth = lowest
    else:
        step, reason = _step_on_the_ladder(depth, reading, configured, dwelt=dwelt)
        depth += {Step.DOWN: 1, Step.UP: -1}.get(step, 0)

    if starved:
        scaler = SubnetScaler(EXHAUSTED_BATCH, STARVED_BUFFER)
    elif exhaustion.exhausted:
        scaler = SubnetScaler(EXHAUSTED_BATCH, EXHAUSTED_BUFFER)
    else:
        scaler = rungs[depth]
    since = standing.since if step is Step.NONE else now
    return SubnetDecision(
        standing=Standing(exhausted=exhaustion.exhausted, starved=starved, depth=depth, since=since),
        scaler=scaler,
        step=step,
        exhaustion=exhaustion,
        reason=reason,
    )


def _is_starved(standing: Standing, reading: Reading, *, dwelt: bool) -> bool:
    if not standing.starved:
        return reading.owed > 0 and reading.free == 0
    fed = reading.owed == 0 and reading.free >= reading.containers
    return not (fed and dwelt)


def _step_at_the_bottom(
    standing: Standing, reading: Reading, exhaustion: Exhaustion, *, starved: bool
) -> tuple[Step, str]:
    """What moved in a subnet that is, or just was, exhausted or starved."""
    if starved:
        step = Step.NONE if standing.starved else Step.STARVED
        return step, (
            f"{reading.owed} addresses are owed, {reading.free} are free; nodes keep none in reserve until "
            f"{reading.containers} are free, one for each container"
        )
    if standing.starved:
        return (
            Step.FED,
            f"{reading.free} addresses are free, enough for each of {reading.containers} containers to keep 1",
        )
    if exhaustion.changed:
        return Step.EXHAUSTED if exhaustion.exhausted else Step.RECOVERED, exhaustion.comparison
    return Step.NONE, exhaustion.comparison


def _step_on_the_ladder(
    depth: int, reading: Reading, configured: Batching, *, dwelt: bool
) -> tuple[Step, str]:
    rungs = ladder(configured)
    lower = configured.thresholds.lower
    limit = lower * reading.capacity
    tq = f"t·Q = {text(lower)}·{reading.capacity} = {text(limit)}"
    if reading.reserved > limit:
        reason = f"R = {reading.reserved} > {tq}"
        if depth == len(rungs) - 1:
            return Step.NONE, f"{reason}, but no smaller batch is left"
        return (Step.DOWN, reason) if dwelt else (Step.NONE, f"{reason}, but the last change is too recent")
    if depth == 0:
        return Step.NONE, f"R = {reading.reserved} ≤ {tq}, and the configured batch is in force"
    expected = expected_at_most(reading, rungs[depth], rungs[depth - 1])
    if expected >= limit:
        return Step.NONE, f"at batch {rungs[depth - 1].batch} R could reach {expected} ≥ {tq}"
    reason = f"at batch {rungs[depth - 1].batch} R stays at {expected} or less, under {tq}"
    return (Step.UP, reason) if dwelt else (Step.NONE, f"{reason}, but the last change is too recent")
