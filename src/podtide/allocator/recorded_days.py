"""The days of a subnet that an allocator remembers, as forecasts take them: one maximum each, of what was reserved and of the need."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from msgspec import Struct

from podtide.allocator.subnets import SubnetUsage
from podtide.core.forecast.daily_maxima import DayMaximum
from podtide.core.subnet.usage_series import DAYS


class RecordedDays(Struct, frozen=True):
    """What was recorded, by day (UTC)."""

    reserved: tuple[DayMaximum, ...]
    need: tuple[DayMaximum, ...]
    """Of days on which nodes stated their demand."""
    capacities: tuple[tuple[date, int], ...]


def recorded_days(rows: Sequence[SubnetUsage]) -> RecordedDays:
    """The rows of a history in steps of a day."""
    days = [(date.fromisoformat(row.timestamp[: len("2026-01-01")]), row) for row in rows]
    return RecordedDays(
        reserved=tuple(DayMaximum(day, row.reserved) for day, row in days),
        need=tuple(DayMaximum(day, row.need) for day, row in days if row.need is not None),
        capacities=tuple((day, row.capacity) for day, row in days),
    )


def day_of(wall_seconds: float) -> date:
    """The day (UTC) that a moment is in."""
    return datetime.fromtimestamp(wall_seconds, UTC).date()


def days_since(wall_seconds: float) -> float:
    """The moment from which on days are kept."""
    return wall_seconds - DAYS.kept_seconds
