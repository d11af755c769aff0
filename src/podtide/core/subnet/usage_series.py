"""Which readings of a subnet are kept, for how long, and how time is divided among rows.

Four series, each with rows of one length, counted from 1970: so a row of a longer series consists of whole rows of the
shorter ones, and a day is a day of UTC. What is close is kept in detail, and what is far back in days: a forecast needs
many of these, and a minute of last year is of no use.

Clocks jump. A stretch of time counts only if it is shorter than `LONGEST_STRETCH_MS`: after a longer one, the allocator was
down, or its clock was set. So a wrong clock can harm the rows of the time it shows, and no others.
"""

from math import floor

from msgspec import Struct

MILLISECONDS = 1_000
LONGEST_STRETCH_MS = 300 * MILLISECONDS
"""Readings are a minute apart. Clocks of replicas differ by less."""
READING_EVERY_SECONDS = 60.0
_SOONEST_READING_MS = 50 * MILLISECONDS
"""Of two replicas that read every minute, one does: the other's turn comes too soon."""


class UsageSeries(Struct, frozen=True):
    """A series whose rows are `step_seconds` long, and are kept for `kept_seconds`."""

    name: str
    step_seconds: int
    kept_seconds: int

    @property
    def step_ms(self) -> int:
        """The length of a row in milliseconds."""
        return self.step_seconds * MILLISECONDS

    @property
    def most_rows(self) -> int:
        """How many rows there are at most, with the one that has begun."""
        return self.kept_seconds // self.step_seconds + 1

    def slot(self, moment_ms: int) -> int:
        """The number of the row that a moment is in."""
        return moment_ms // self.step_ms

    def oldest_slot(self, now_seconds: float) -> int:
        """The number of the oldest row that is kept."""
        return floor((now_seconds - self.kept_seconds) // self.step_seconds)

    def reaches(self, since_seconds: float, now_seconds: float) -> bool:
        """Whether it goes back to that time."""
        return self.oldest_slot(now_seconds) <= since_seconds // self.step_seconds


FIVE_SECONDS = UsageSeries("5s", 5, 3_600)
MINUTES = UsageSeries("1m", 60, 86_400)
QUARTERS = UsageSeries("15m", 900, 90 * 86_400)
DAYS = UsageSeries("1d", 86_400, 731 * 86_400)
"""Two years, of which one may be a leap year."""
SERIES = (FIVE_SECONDS, MINUTES, QUARTERS, DAYS)
"""From the finest to the coarsest."""
SERIES_WITH_DEMAND = (MINUTES, QUARTERS, DAYS)
"""Demand is read every minute: between two readings, five seconds have none."""
MOST_ROWS = max(series.most_rows for series in SERIES)
"""How many rows an answer has at most."""


class TimePart(Struct, frozen=True):
    """The part of a stretch of time that is in one row."""

    slot: int
    since_ms: int
    length_ms: int


def to_milliseconds(seconds: float) -> int:
    """Seconds since 1970 in whole milliseconds. Whole ones add up, and survive a database that keeps seconds as a float."""
    return round(seconds * MILLISECONDS)


def divide(series: UsageSeries, since_ms: int, until_ms: int) -> list[TimePart]:
    """The rows that a stretch of time goes through, with the part of it that is in each.

    Of the finest series only the first and the last: a subnet in which nothing happens would have twelve rows a minute.
    """
    first, last = series.slot(since_ms), series.slot(until_ms)
    slots = range(first, last + 1) if series is not FIVE_SECONDS else sorted({first, last})
    parts = (
        (slot, max(since_ms, slot * series.step_ms), min(until_ms, (slot + 1) * series.step_ms))
        for slot in slots
    )
    return [TimePart(slot, begin, end - begin) for slot, begin, end in parts if end > begin]


def is_set_back(since_ms: int, now_ms: int) -> bool:
    """Whether the clock was set back since; by a little, it is another replica's that is behind, and catches up."""
    return now_ms < since_ms - LONGEST_STRETCH_MS


def countable_ms(since_ms: int, now_ms: int) -> int | None:
    """How long ago that was; None if nothing is known of the time between, or it is yet to come."""
    return now_ms - since_ms if 0 <= now_ms - since_ms <= LONGEST_STRETCH_MS else None


def is_reading_due(last_ms: int, now_ms: int) -> bool:
    """Whether it is time to read demand again, after the last reading of any replica."""
    return now_ms - last_ms >= _SOONEST_READING_MS or is_set_back(last_ms, now_ms)


def choose_series(
    since_seconds: float, until_seconds: float, now_seconds: float, most_rows: int = MOST_ROWS
) -> UsageSeries:
    """The finest series that goes back to `since` and has at most so many rows from there on; else days."""
    span = max(0.0, min(until_seconds, now_seconds) - since_seconds)
    for series in SERIES:
        if series.reaches(since_seconds, now_seconds) and span <= most_rows * series.step_seconds:
            return series
    return DAYS
