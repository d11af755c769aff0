"""Whether a subnet is exhausted: two thresholds, so that it does not flicker.

    exhausted turns on  when R > T·Q
    exhausted turns off when R < t·Q        0 < t < T < 1

Both inequalities are strict and t < T, so no R satisfies both: on one R the answer changes at most once. Between the
thresholds it stays what it was. R counts every reserved address, the containers' primaries among them.
"""

from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podtide.core.errors import InvalidThresholds
from podtide.core.exact import text


class Thresholds(Struct, frozen=True):
    """t and T, as fractions of the subnet's capacity."""

    lower: Fraction = Fraction(8, 10)
    upper: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        if not 0 < self.lower < self.upper < 1:
            raise InvalidThresholds(
                f"thresholds {text(self.lower)} and {text(self.upper)} do not make a band: "
                "the lower must be less than the upper, both between 0 and 1, such as 0.8 and 0.9"
            )


class Side(StrEnum):
    """The side of the thresholds on which R is."""

    ABOVE = "above the upper threshold"
    BETWEEN = "between the thresholds"
    BELOW = "below the lower threshold"


class Exhaustion(Struct, frozen=True):
    """Whether the subnet is exhausted, with the terms that decided."""

    exhausted: bool
    changed: bool
    side: Side
    reserved: int
    capacity: int
    thresholds: Thresholds

    def __str__(self) -> str:
        state = "exhausted" if self.exhausted else "not exhausted"
        return f"{'now' if self.changed else 'still'} {state}: {self.comparison}"

    @property
    def comparison(self) -> str:
        """The inequality that decided, with its numbers in it."""
        on = f"T·Q = {text(self.thresholds.upper)}·{self.capacity} = {text(self.thresholds.upper * self.capacity)}"
        off = f"t·Q = {text(self.thresholds.lower)}·{self.capacity} = {text(self.thresholds.lower * self.capacity)}"
        return {
            Side.ABOVE: f"R = {self.reserved} > {on}",
            Side.BETWEEN: f"{off} ≤ R = {self.reserved} ≤ {on}",
            Side.BELOW: f"R = {self.reserved} < {off}",
        }[self.side]


def judge_exhaustion(*, exhausted: bool, reserved: int, capacity: int, thresholds: Thresholds) -> Exhaustion:
    """Whether a subnet is exhausted now, given whether it was."""
    if capacity < 1:
        raise InvalidThresholds(f"capacity {capacity} is too small: a subnet has at least 1 usable address")
    if reserved < 0:
        raise InvalidThresholds(f"reserved {reserved} is negative: it is a count of addresses, 0 or more")
    if reserved > thresholds.upper * capacity:
        side = Side.ABOVE
    elif reserved < thresholds.lower * capacity:
        side = Side.BELOW
    else:
        side = Side.BETWEEN
    now = exhausted if side is Side.BETWEEN else side is Side.ABOVE
    return Exhaustion(now, now != exhausted, side, reserved, capacity, thresholds)
