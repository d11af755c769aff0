"""Numbers as options: exact fractions, whole numbers within bounds, and durations such as `30s` or `100ms`."""

import re
from fractions import Fraction
from typing import Any

import click

from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, shortened
from podtide.runtime.durations import LONGEST_SECONDS, format_duration, parse_duration

_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")


class FractionType(click.ParamType[Fraction]):
    """A decimal or a fraction, kept exact."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Read it, and call it by its option's name when it is no number."""
        del ctx
        return exact(value, param.opts[0] if param else "value")


FRACTION = FractionType()


class CountType(click.ParamType[int]):
    """A whole number. Which ones make sense, a negative one for instance, is for the decision to say."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it, and call it by its option's name when it is none."""
        del ctx
        if isinstance(value, int):
            return value
        if not _WHOLE_NUMBER.fullmatch(value.strip()):
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name} {shortened(value)!r} is no whole number of at most 18 digits: give one"
            )
        return int(value)


COUNT = CountType()


class BoundedCount(CountType):
    """A whole number between two bounds, which whoever is asked would refuse in words that name no option."""

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it, and call it by its option's name when it is none, or out of bounds."""
        try:
            number = super().convert(value, param, ctx)
        except InvalidInput:
            number = self._least - 1
        if not self._least <= number <= self._most:
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name}={shortened(str(value))} is refused: give a whole number, at least {self._least} and at most "
                f"{self._most}"
            )
        return number


class DurationType(click.ParamType[float]):
    """A duration, in seconds to the command; one of nothing at all only where that `may_be_zero`."""

    name = "duration"

    def __init__(self, *, may_be_zero: bool = True) -> None:
        self._may_be_zero = may_be_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it as people write it, and call it by its option's name when it is none that can be used."""
        del ctx
        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(value)
        except InvalidInput:
            seconds = -1.0
        if seconds < 0 or seconds > LONGEST_SECONDS or not (seconds or self._may_be_zero):
            name = param.opts[-1] if param else "duration"
            least = "at least 0s" if self._may_be_zero else "more than 0s"
            raise InvalidInput(
                f"{name}={shortened(value)} is refused: give a duration such as 30s or 100ms, {least} and at most "
                f"{format_duration(LONGEST_SECONDS)}"
            )
        return seconds


DURATION = DurationType()
INTERVAL = DurationType(may_be_zero=False)
