"""Durations as arguments: `30s`, `100ms`, or plain seconds."""

from typing import Any

import click

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.runtime.durations import LONGEST_SECONDS, format_duration, parse_duration


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
