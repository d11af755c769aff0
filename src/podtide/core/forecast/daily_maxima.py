"""What a subnet's history has to be before anything is concluded from it: one maximum for each full day, in order.

A history comes as it was recorded: with days missing because the allocator was down, twice from two readers, unsorted,
with a clock that was once set to another year, and up to a day that is not over. The maximum of such a day is of a part
of it, and would pull every trend down, so it is set apart. What was left out is said, in words for people.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from podtide.core.errors import InvalidInput

MOST_DAYS = 731
"""Two years and a day: what is older says nothing of the growth of today, and neither does a clock that was off."""


class DayMaximum(NamedTuple):
    """The most addresses that were reserved, or needed, at any time of a day (UTC)."""

    day: date
    most: int


class DailySeries(Struct, frozen=True):
    """Full days in order, without duplicates. Days are missing where nothing was recorded."""

    days: tuple[DayMaximum, ...]
    running: DayMaximum | None
    """The day that is not over, so far."""
    left_out: tuple[str, ...]
    """What was left out, and why, as words."""

    @property
    def missing(self) -> int:
        """How many days between the first and the last have no record."""
        if not self.days:
            return 0
        return (self.days[-1].day - self.days[0].day).days + 1 - len(self.days)


def daily_series(days: Iterable[DayMaximum], today: date) -> DailySeries:
    """The days in order, each once with its largest maximum; `today` is the day that is not over."""
    most: dict[date, int] = {}
    for day, value in days:
        if value < 0:
            raise InvalidInput(
                f"{value} addresses on {day.isoformat()} are refused: a count of addresses is 0 or more"
            )
        most[day] = max(value, most.get(day, 0))
    running = most.pop(today, None)
    later = [day for day in most if day > today]
    known = sorted(DayMaximum(day, value) for day, value in most.items() if day < today)
    kept = [each for each in known if each.day > known[-1].day - timedelta(days=MOST_DAYS)]
    return DailySeries(
        days=tuple(kept),
        running=None if running is None else DayMaximum(today, running),
        left_out=tuple(_left_out(len(later), len(known) - len(kept), today)),
    )


def _left_out(later: int, older: int, today: date) -> Iterable[str]:
    if later:
        yield f"{_days(later)} left out: after {today.isoformat()}, the day of the forecast"
    if older:
        yield f"{_days(older)} left out: more than two years before the last"


def _days(count: int) -> str:
    return "1 day was" if count == 1 else f"{count} days were"


class CapacityStep(NamedTuple):
    """A day on which the subnet's capacity was another than the day before."""

    day: date
    before: int
    after: int


def capacity_steps(capacities: Iterable[tuple[date, int]]) -> tuple[CapacityStep, ...]:
    """When the capacity changed: CIDRs were added, or left. The last word of a day counts."""
    in_order = sorted(dict(capacities).items())
    return tuple(
        CapacityStep(day, before, after)
        for (_, before), (day, after) in pairwise(in_order)
        if before != after
    )
