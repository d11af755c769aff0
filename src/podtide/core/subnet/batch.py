"""Which batch and buffer are in force for a subnet: the one place that decides it, for all of its nodes.

Decided as a request is: from demand, not from the last batch. For each rung B (see `batch_bounds`) the containers'
statements say between which bounds R would come to rest (`demand_by_batch`):

    raise   to the largest rung with R⁺(B) < t·Q
    lower   when R > T·Q, or will be once what is owed is granted, and the batch in force does not fit: to the largest
            smaller rung with R⁻(B) < t·Q, else to the rung with the least R⁻

Between the two nothing moves: the band from t to T is the only memory. A larger batch is in force only where R at rest
stays under t·Q, and a smaller one is taken only where it does not, so neither can bring about the other, however far R is
from its rest: at constant demand the batch changes at most twice (once by what is known, once more when every node has
stated its demand) and then never.

No further change is made before every container has answered the last one, or `answer_seconds` have passed: until then R
and the statements are those of the batch before. What a person sets is in force at once.

    starved     a container is owed an address and none is left: batch 1, buffer 0

It is entered when batch 1 did not help, or when no rung can: a burst does not jump past rungs that fit. It ends when as
many addresses are free as there are containers, for then each of them can take back the one it keeps at batch 1, and no
container is owed again. Starved overrides a pin and a lowest batch, or pods that fit would go without; it ends as well
once R⁺ at them is at most Q, and they are in force again.
"""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from podtide.core.errors import InvalidThresholds
from podtide.core.exact import text
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.count_text import are_text
from podtide.core.subnet.demand_by_batch import ContainerDemandCounts, PodRange, ReservedRange, SubnetDemand
from podtide.core.subnet.exhaustion import Exhaustion, judge_exhaustion
from podtide.core.subnet.scaler import EXHAUSTED_BATCH, STARVED_BUFFER, SubnetScaler

STARVED = SubnetScaler(EXHAUSTED_BATCH, STARVED_BUFFER)
"""What is in force in a starved subnet."""


class BatchDelays(Struct, frozen=True):
    """How long to wait before the batch is changed again."""

    answer_seconds: float = 60.0
    """For containers to answer the last one."""
    starved_dwell_seconds: float = 30.0
    """Before starved may end."""


class SubnetReading(Struct, frozen=True, kw_only=True):
    """The counts of a subnet at one instant."""

    capacity: int
    """What there is to give once CIDRs that drain are gone: what nodes have of those they will need in its stead."""
    reserved: int
    containers: int
    owed: int = 0
    ungoverned: int = 0
    """Of the reserved ones, those that are in no node's pool: in quarantine, or reserved for no pool."""
    holdings: ContainerDemandCounts = {}
    draining: int = 0
    """Of the reserved ones, those in CIDRs that drain, which are not in the capacity."""

    def __post_init__(self) -> None:
        for name in ("containers", "owed", "ungoverned", "draining"):
            if getattr(self, name) < 0:
                raise InvalidThresholds(f"{name} {getattr(self, name)} is negative: it is a count, 0 or more")

    @property
    def free(self) -> int:
        """How many addresses are not reserved."""
        return max(0, self.capacity + self.draining - self.reserved)


class BatchInForce(Struct, frozen=True, kw_only=True):
    """The batch in force; a scaler of None means that none was decided yet."""

    scaler: SubnetScaler | None = None
    exhausted: bool = False
    starved: bool = False
    age_seconds: float = 0.0
    """Since when the scaler is in force. Less than 0 where the clock was set back: then it is unknown."""


class BatchMove(StrEnum):
    """What changed, as the reason of an Event."""

    STARVED = "Starved"
    FED = "Fed"
    EXHAUSTED = "Exhausted"
    RECOVERED = "Recovered"
    DOWN = "BatchReduced"
    UP = "BatchRaised"
    CONFIGURED = "BatchConfigured"
    NONE = "Unchanged"


class Rung(Struct, frozen=True):
    """A batch that could be chosen, and the R that it would lead to."""

    scaler: SubnetScaler
    expected: ReservedRange
    fits: bool
    """R⁺ < t·Q: the batch can be raised to it."""


class SubnetDecision(Struct, frozen=True, kw_only=True):
    """The decision, with the terms that led to it."""

    scaler: SubnetScaler
    exhausted: bool
    starved: bool
    step: BatchMove
    """What moved of batch and buffer, or that nothing did."""
    reason: str
    exhaustion: Exhaustion
    rungs: tuple[Rung, ...] = ()
    unanswered: int = 0
    without_reserve: ReservedRange = ReservedRange(0, 0)
    """R⁻ and R⁺ if nodes kept no address in reserve: as in a starved subnet, whether it is starved or not."""
    pods: PodRange = PodRange(0, 0)

    def __str__(self) -> str:
        return f"batch {self.scaler.batch}, buffer {text(self.scaler.buffer)} ({self.step}): {self.reason}"


BatchRule = Callable[[BatchInForce, SubnetReading, BatchBounds, BatchDelays], SubnetDecision]
"""Decides which batch is in force: `decide_batch`, or a baseline that it is compared with."""


class _Move(Struct, frozen=True):
    """The new parameters, and why."""

    scaler: SubnetScaler
    step: BatchMove
    reason: str
    starved: bool = False


def decide_batch(
    standing: BatchInForce, reading: SubnetReading, bounds: BatchBounds, delays: BatchDelays | None = None
) -> SubnetDecision:
    """Decide which batch is in force for the subnet from now on."""
    exhaustion = judge_exhaustion(
        exhausted=standing.exhausted,
        reserved=reading.reserved,
        capacity=reading.capacity,
        thresholds=bounds.thresholds,
    )
    choice = _Choice(standing, reading, bounds, delays or BatchDelays(), exhausted=exhaustion.exhausted)
    move = choice.move()
    return SubnetDecision(
        scaler=move.scaler,
        exhausted=exhaustion.exhausted,
        starved=move.starved,
        step=move.step,
        reason=move.reason,
        exhaustion=exhaustion,
        rungs=choice.rungs,
        unanswered=choice.unanswered,
        without_reserve=choice.without_reserve,
        pods=choice.pods,
    )


class _Choice:
    """One decision, with its inputs computed once."""

    def __init__(
        self,
        standing: BatchInForce,
        reading: SubnetReading,
        bounds: BatchBounds,
        delays: BatchDelays,
        *,
        exhausted: bool,
    ) -> None:
        self._standing = standing
        self._reading = reading
        self._bounds = bounds
        self._delays = delays
        self._lower_limit = bounds.thresholds.lower * reading.capacity
        self._upper_limit = bounds.thresholds.upper * reading.capacity
        is_overdue = not 0 <= standing.age_seconds < delays.answer_seconds
        demand = SubnetDemand(
            holdings=reading.holdings,
            ungoverned=reading.ungoverned,
            in_force=standing.scaler or bounds.rungs[-1],
            top=bounds.top,
            exhausted=exhausted,
            is_overdue=is_overdue,
        )
        self.unanswered = 0 if standing.scaler is None else demand.unanswered
        self._is_answered = is_overdue or not self.unanswered
        self.rungs = tuple(
            Rung(scaler, expected, fits=expected.most < self._lower_limit)
            for scaler in bounds.rungs
            for expected in [demand.at(scaler)]
        )
        self.without_reserve, self.pods = demand.at(STARVED), demand.pods
        self._allowed = tuple(rung for rung in self.rungs if rung.scaler.batch >= bounds.lowest)

    def move(self) -> _Move:
        """The parameters to put in force."""
        standing, reading = self._standing, self._reading
        if self._is_starved():
            return _Move(
                STARVED,
                BatchMove.NONE if standing.starved else BatchMove.STARVED,
                f"{are_text(reading.owed, 'address', 'addresses')} owed, {are_text(reading.free)} free; nodes keep none in reserve until "
                f"{are_text(reading.containers)} free, one for each container",
                starved=True,
            )
        if standing.starved:
            return _Move(self._after_starvation().scaler, BatchMove.FED, self._why_it_is_fed())
        return self._among_rungs()

    def _is_starved(self) -> bool:
        standing, reading = self._standing, self._reading
        if standing.starved:
            dwelt = not 0 <= standing.age_seconds < self._delays.starved_dwell_seconds
            return not (dwelt and reading.owed == 0 and (self._has_room_for_all() or self._lowest_has_room()))
        if not reading.owed or reading.free:
            return False
        tried = standing.scaler is not None and standing.scaler.batch == EXHAUSTED_BATCH and self._is_answered
        return tried or all(rung.expected.least > reading.capacity for rung in self._allowed)

    def _has_room_for_all(self) -> bool:
        """Whether there is room for the one address that every container keeps free at batch 1."""
        return self._reading.free >= self._reading.containers

    def _lowest_has_room(self) -> bool:
        """Whether the pin, or the lowest batch allowed, fits in the subnet, so that no container is owed by it."""
        lowest = self._allowed[0]
        return lowest.scaler.batch > EXHAUSTED_BATCH and lowest.expected.most <= self._reading.capacity

    def _why_it_is_fed(self) -> str:
        reading, lowest = self._reading, self._allowed[0]
        if self._has_room_for_all():
            return f"{reading.free} addresses are free, enough for each of {reading.containers} containers to keep 1"
        return f"at batch {lowest.scaler.batch} R stays at {lowest.expected.most} or less, and Q = {reading.capacity}"

    def _after_starvation(self) -> Rung:
        """The largest rung that fits; of those a person allows, the lowest need only fit in the subnet."""
        lowest = self._allowed[0]
        fitting = [rung for rung in self.rungs if rung.fits]
        if self._lowest_has_room():
            fitting = [lowest, *(rung for rung in fitting if rung.scaler.batch > lowest.scaler.batch)]
        return fitting[-1] if fitting else self.rungs[0]

    def _among_rungs(self) -> _Move:
        candidates, current = self._candidates()
        before = self._standing.scaler
        if before is not None and before != current.scaler:
            step, reason = BatchMove.CONFIGURED, f"configured with {self._bounds.words}"
        else:
            step, reason = BatchMove.NONE, ""
        if not self._is_answered:
            waiting = f"{self.unanswered} of {self._reading.containers} containers have not answered the last change yet"
            return _Move(current.scaler, step, reason or waiting)
        rung, why = self._raised_or_lowered(candidates, current)
        if rung is current:
            return _Move(current.scaler, step, reason or why)
        up = rung.scaler.batch > (before or current.scaler).batch
        return _Move(rung.scaler, BatchMove.UP if up else BatchMove.DOWN, why)

    def _candidates(self) -> tuple[tuple[Rung, ...], Rung]:
        """The rungs to choose from, and the one that counts as in force.

        A rung that the bounds exclude is left at once. Below the lowest rung allowed, where starvation led, the rungs
        there are candidates until the lowest allowed one fits in the subnet.
        """
        batch = self._bounds.top if self._standing.scaler is None else self._standing.scaler.batch
        current = [rung for rung in self.rungs if rung.scaler.batch <= batch][-1]
        lowest = self._allowed[0]
        if current.scaler.batch >= lowest.scaler.batch:
            return self._allowed, current
        if lowest.expected.most <= self._reading.capacity:
            return self._allowed, lowest
        return tuple(rung for rung in self.rungs if rung.scaler.batch < lowest.scaler.batch), current

    def _raised_or_lowered(self, candidates: tuple[Rung, ...], current: Rung) -> tuple[Rung, str]:
        reading, batch = self._reading, current.scaler.batch
        largest = next((rung for rung in reversed(candidates) if rung.fits), None)
        if largest is not None and largest.scaler.batch > batch:
            return largest, (
                f"at batch {largest.scaler.batch} R stays at {largest.expected.most} or less, under {self._tq}"
            )
        coming = reading.reserved + reading.owed
        if coming <= self._upper_limit:
            return current, self._why_it_stays(candidates, current)
        if current.fits:
            return current, (
                f"R = {reading.reserved} is on its way: at batch {batch} it comes to rest at {current.expected.most} or "
                f"less, under {self._tq}"
            )
        over = f"R = {reading.reserved}"
        if reading.owed:
            over += f" and {reading.owed} owed"
        over += (
            f" > T·Q = {text(self._bounds.thresholds.upper)}·{reading.capacity} = {text(self._upper_limit)}"
        )
        smaller = [rung for rung in candidates if rung.scaler.batch < batch]
        fitting = [rung for rung in smaller if rung.expected.least < self._lower_limit]
        if fitting:
            chosen = fitting[-1]
            rest = f"at batch {chosen.scaler.batch} R can come to rest at {chosen.expected.least}, under {self._tq}"
            return chosen, f"{over}; {rest}"
        frugal = min([current, *reversed(smaller)], key=lambda rung: rung.expected.least)
        if frugal is current:
            return current, f"{over}, but no smaller batch takes less"
        return frugal, f"{over}; no batch stays under {self._tq}, and at {frugal.scaler.batch} R is the least"

    def _why_it_stays(self, candidates: tuple[Rung, ...], current: Rung) -> str:
        larger = [rung for rung in candidates if rung.scaler.batch > current.scaler.batch]
        if not larger:
            return f"R = {self._reading.reserved}, and the largest batch allowed is in force"
        following = larger[0]
        return (
            f"at batch {following.scaler.batch} R could reach {following.expected.most}, not under {self._tq}"
        )

    @property
    def _tq(self) -> str:
        lower = self._bounds.thresholds.lower
        return f"t·Q = {text(lower)}·{self._reading.capacity} = {text(self._lower_limit)}"
