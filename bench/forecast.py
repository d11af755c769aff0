"""How good the forecast of a subnet's use is: beside simple ones, on a real trace and on drawn histories."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from forecast_scores import (
    BASELINES,
    GENERATORS,
    band_scores,
    date_score,
    drawn,
    errors,
    podtide,
    trace_maxima,
)

PART = "forecast"
HISTORIES = 8
DAYS = 60
EVERY = 4
"""From every fourth day on a forecast is scored in drawn histories: those of neighbouring days hardly differ."""
GROWING = ("linear", "steps", "weekly", "launch days", "wandering")
"""Kinds of histories that reach levels they had not reached before."""
DATE_HISTORIES = 30
DATES = ((14, 30), (60, 30), (60, 90))
"""Days of history, and in how many days the level is reached."""


def measure() -> Iterator[tuple[str, str]]:
    """Errors on the trace, then on drawn histories, then of dates."""
    trace = trace_maxima()
    for name, forecast in (*BASELINES.items(), ("podtide", podtide)):
        found = errors(forecast, [trace])
        yield (
            f"trace: error 7 days ahead / over 1 to 7, {name}",
            _pair(found.a_week_ahead, found.within_a_week),
        )
    yield from _band("trace", [trace], 1)
    for generator in GENERATORS:
        histories = drawn(generator, HISTORIES, DAYS)
        for name, forecast in (*BASELINES.items(), ("podtide", podtide)):
            off = errors(forecast, histories, EVERY)
            yield f"{generator}: the same, {name}", _pair(off.a_week_ahead, off.within_a_week)
        yield from _band(generator, histories, EVERY)
    for generator in GROWING:
        for known, ahead in DATES:
            score = date_score(drawn(generator, DATE_HISTORIES, known + ahead), known, ahead)
            yield (
                f"{generator}: date {ahead} days ahead by {known} days, off by / within 90 %",
                f"{score.error_days:.1f} days / {score.within:.0%}",
            )


def _band(label: str, histories: list[list[int]], every: int) -> Iterator[tuple[str, str]]:
    found = band_scores(histories, every)
    yield f"{label}: pinball loss at 0.5 / 0.9", _pair(found.pinball_half, found.pinball_nine_tenths)
    yield f"{label}: coverage of the band of 90 % / its width", f"{found.coverage:.1%} / {found.width:.0f}"


def _pair(first: float, second: float) -> str:
    return f"{first:.1f} / {second:.1f}"
