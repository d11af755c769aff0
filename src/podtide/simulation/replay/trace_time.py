"""Times in a trace: numbers whose unit is the name of their column, Unix times, or dates.

    second, minute, hour, day           a number in that unit; the plural is the same
    time, timestamp, date, datetime     a date such as 2026-11-01T06:00:00Z (without a zone it is UTC), or a Unix time in
                                        seconds, or in milliseconds where it is larger than 100,000,000,000

Grafana writes milliseconds, Prometheus seconds; in seconds such a number would be the year 5138.
"""

import math
from datetime import UTC, datetime

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened

_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_INSTANTS = ("time", "timestamp", "date", "datetime")
_MILLISECONDS_FROM = 1e11
_MILLISECONDS = 1000.0

KNOWN_NAMES = (*_INSTANTS, *_UNITS)
"""Names of time columns, without plurals."""


class TraceTime:
    """How the times of one column are written."""

    def __init__(self, column: str) -> None:
        self._unit = _UNITS.get(_singular(column))

    def parse(self, written: str) -> float:
        """The time in seconds, from whatever the column counts from; InvalidInput if it is not one."""
        number = _number(written)
        if number is not None and self._unit is not None:
            return number * self._unit
        if number is not None:
            return number / _MILLISECONDS if abs(number) > _MILLISECONDS_FROM else number
        if self._unit is None and (instant := _date(written)) is not None:
            return instant
        wanted = "a number" if self._unit else "a date such as 2026-11-01T06:00:00Z, or a Unix time"
        raise InvalidInput(f"{shortened(written)!r} is not a time: give {wanted}")


def is_time_column(column: str) -> bool:
    """Whether a column of this name has the times."""
    return _singular(column) in KNOWN_NAMES


def _singular(column: str) -> str:
    return column.lower().removesuffix("s")


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(written: str) -> float | None:
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
