"""Durations as people write them: `30s`, `100ms`, `5m`, `1h`, or plain seconds."""

import re
from decimal import Decimal

from podtide.core.errors import InvalidInput

LONGEST_SECONDS = 365 * 24 * 3600.0
"""A year. A longer one is a mistake, and what counts to it (timers, dates, other programs) does not reach much further."""

_UNITS = {"ms": Decimal("0.001"), "": Decimal(1), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_SHAPE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?(ms|s|m|h|)", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds. The unit is applied in decimals, so that `100ms` is the same number as `0.1`."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"invalid duration {text!r}: use a number and a unit (ms, s, m or h), such as 30s or 100ms; a number alone is seconds"
        )
    number, unit = match.groups()
    return float(Decimal(number) * _UNITS[unit])


def format_duration(seconds: float) -> str:
    """The text that reads back as the same duration, in the largest unit that keeps it a whole number."""
    exact = Decimal(repr(seconds))
    if not exact:
        return "0s"
    for unit in ("h", "m", "s", "ms"):
        count = exact / _UNITS[unit]
        if count == count.to_integral_value():
            return f"{int(count)}{unit}"
    return f"{exact:f}s"
