"""A moment in the past as an option: a duration back from now, such as `7d`, or a date or time, such as `2026-11-05`."""

import re
from datetime import UTC, date, datetime
from typing import Any

import click

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.runtime.clock import SystemClock

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_BACK = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class MomentType(click.ParamType[float]):
    """A moment, in seconds since 1970 for the command. Dates are days of UTC, and begin at midnight."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The moment; an error names the option."""
        del ctx
        if isinstance(value, float):
            return value
        written = str(value).strip()
        moment = _before_now(written) if _BACK.fullmatch(written) else _of_calendar(written)
        if moment is None:
            name = param.opts[0] if param else "moment"
            raise InvalidInput(
                f"{name}={shortened(written)} is refused: give a duration back from now, such as 7d or 12h, or a date or a time "
                "with its zone, such as 2026-11-05 or 2026-11-05T12:00:00Z"
            )
        return moment


MOMENT = MomentType()


def _before_now(written: str) -> float:
    number, unit = written[:-1], written[-1]
    return max(0.0, SystemClock().wall() - int(number) * _UNITS[unit])


def _of_calendar(written: str) -> float | None:
    """Seconds since 1970 of a date, or of a time with a zone; None for anything else, and for what was before 1970."""
    try:
        if _DATE.fullmatch(written):
            day = date.fromisoformat(written)
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.timestamp() < 0:
        return None
    return moment.timestamp()
