"""Numbers as options: exact fractions, whole numbers within bounds, and durations such as `30s` or `100ms`."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import click

from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, shortened, text
from podtide.runtime.durations import LONGEST_SECONDS, format_duration, parse_duration

_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")


class FractionType(click.ParamType[Fraction]):
    """A decimal or a fraction, kept exact."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """The exact value; an error names the option."""
        del ctx
        return exact(value, param.opts[0] if param else "value")


def fraction_option(
    flag: str, default: Fraction, help_text: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option for a fraction that has a default."""
    return click.option(
        flag, type=FractionType(), default=default, show_default=text(default), help=help_text
    )


class CountType(click.ParamType[int]):
    """A whole number. Whether a negative one makes sense is for the command to say."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; an error names the option."""
        del ctx
        if isinstance(value, int):
            return value
        if not _WHOLE_NUMBER.fullmatch(value.strip()):
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name} {shortened(value)!r} is not a whole number of at most 18 digits: give one such as 16"
            )
        return int(value)


COUNT = CountType()


class BoundedCount(CountType):
    """A whole number from 0 to a bound. It is checked here because the error has to name the option."""

    def __init__(self, most: int) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; an error names the option and the bounds."""
        try:
            number = super().convert(value, param, ctx)
        except InvalidInput:
            number = -1
        if not 0 <= number <= self._most:
            name = param.opts[0] if param else "value"
            raise InvalidInput(
                f"{name}={shortened(str(value))} is refused: give a whole number, at least 0 and at most {self._most}"
            )
        return number


class DurationType(click.ParamType[float]):
    """A duration, in seconds for the command; zero only if `may_be_zero`."""

    name = "duration"

    def __init__(self, *, may_be_zero: bool = True) -> None:
        self._may_be_zero = may_be_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; an error names the option and the bounds."""
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
