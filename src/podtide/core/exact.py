"""Exact numbers: fractions in, fractions out, and their text for people. No float takes part in a decision.

A float that arrives from JSON (`buffer: 0.1`) means the decimal that a person wrote, not its nearest binary
neighbour, so it is read by its shortest text.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from podtide.core.errors import InvalidInput

_READABLE = re.compile(r"[-+]?[0-9./]{1,60}(?:[eE][-+]?[0-9]{1,2})?%?")
"""What a person writes. A number with a million digits is a mistake, and takes minutes to parse."""

_QUOTED = 40


def exact(value: float | str | Fraction, name: str = "value") -> Fraction:
    """The fraction meant by `0.5`, `"0.5"`, `"1/2"` or `"50%"`; `name` is what the error calls it."""
    try:
        if isinstance(value, float) and isfinite(value):
            return _read(repr(value))
        if isinstance(value, str) and _READABLE.fullmatch(written := value.strip()):
            return _read(written)
        if isinstance(value, int | Fraction):
            return Fraction(value)
    except (ValueError, ZeroDivisionError):
        pass
    raise InvalidInput(
        f"{name} {shortened(str(value))!r} is not a number: give a decimal or a fraction, such as 0.5 or 1/2"
    )


@lru_cache(maxsize=1024)
def _read(written: str) -> Fraction:
    """The same few are read again and again: with every look at a subnet, of every cluster's bounds."""
    return Fraction(written[:-1]) / 100 if written.endswith("%") else Fraction(written)


def shortened(written: str) -> str:
    """The text, cut to what fits in one line of a message."""
    return written if len(written) <= _QUOTED else f"{written[:_QUOTED]}…"


@lru_cache(maxsize=1024)
def text(value: Fraction | int) -> str:
    """The shortest exact text: `48`, `0.5`, or `1/3` where no decimal is exact.

    The same few buffers and thresholds are written again and again, with every statement of every node.
    """
    fraction = Fraction(value)
    rest = fraction.denominator
    places = 0
    while rest % 10 == 0:
        rest //= 10
        places += 1
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
            places += 1
    if rest != 1:
        return f"{fraction.numerator}/{fraction.denominator}"
    scaled = str(abs(int(fraction * 10**places))).rjust(places + 1, "0")
    whole, decimals = scaled[: len(scaled) - places], scaled[len(scaled) - places :].rstrip("0")
    sign = "-" if fraction < 0 else ""
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"
