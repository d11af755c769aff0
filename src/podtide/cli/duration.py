"""Durations as arguments: `30s`, `100ms`, or plain seconds."""

from typing import Any

import click

from podtide.runtime.durations import parse_duration


class DurationType(click.ParamType[float]):
    """A duration, in seconds to the command."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it as people write it."""
        del param, ctx
        return value if isinstance(value, float) else parse_duration(value)


DURATION = DurationType()
