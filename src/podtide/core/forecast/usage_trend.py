"""The line that a subnet's daily maxima follow, blended from several by how well each would have done before.

No single way to draw the line is best for all subnets. Where services are launched one after the other, the last value
is the level and two months give the slope; where use swings around a trend, the last value misleads; a short window
notices first that growth has changed. So there are six lines: a slope by each of the last 14, 28 and 56 days, with a
level by the last day or by the median of the last three. Each counts by the fourth power of the inverse of its mean
error, 1 to 7 days ahead, from the last 28 days on which it could have been drawn. How this was chosen, and what else was
tried, is in docs/forecast.md; `make bench ONLY=forecast` measures it.

A slope is a least-squares one after values far off the line were pulled towards it, so that one day of a load test does
not count as growth. All lines are exact where use grows by the same number every day, and so is every blend of them.

Floats suffice: a forecast decides nothing about any address. Values count from the first one and days from the last, so
that a shifted history gives the very same line, shifted.
"""

from collections.abc import Sequence
from operator import mul, sub
from statistics import median
from typing import NamedTuple

SLOPE_DAYS = (14, 28, 56)
LEVEL_DAYS = (1, 3)
FIRST_ORIGIN = 5
"""With how many days the first line is drawn."""
HORIZON = 7
"""How many days ahead errors are measured."""
_TRIALS = 28
_POWER = 4
_SMALLEST_SCORE = 0.01
"""What a line that was never off counts as, in parts of the mean error: no line gets all of the weight."""
_CLIPPING_PASSES = 2
_FAR_OFF = 3.7
"""Where a value is pulled towards the line, in medians of the distance from it: two and a half standard deviations."""


class Point(NamedTuple):
    """A day, counted from the last one, and its value."""

    day: int
    value: float


class TrendLine(NamedTuple):
    """A level on the last day that was known, and what comes to it every day."""

    level: float
    slope: float

    def after(self, days: int) -> float:
        """The value so many days later."""
        return self.level + self.slope * days


class ForecastError(NamedTuple):
    """By how much the truth was above a forecast, so many days ahead."""

    days_ahead: int
    off: float


def robust_slope(points: Sequence[Point]) -> float:
    """The least-squares slope, after values that are far off the line were pulled towards it, twice."""
    middle = sum(point.day for point in points) / len(points)
    days = [point.day - middle for point in points]
    values = [point.value for point in points]
    spread = sum(map(mul, days, days))
    slope: float = sum(map(mul, days, values)) / spread
    for _ in range(_CLIPPING_PASSES):
        values = _clipped(days, values, slope)
        slope = sum(map(mul, days, values)) / spread
    return slope


def _clipped(days: Sequence[float], values: Sequence[float], slope: float) -> list[float]:
    mean = sum(values) / len(values)
    fitted = [mean + slope * day for day in days]
    off = list(map(sub, values, fitted))
    most = _FAR_OFF * median(map(abs, off))
    return [fit + max(-most, min(most, each)) for fit, each in zip(fitted, off, strict=True)]


def candidate_lines(points: Sequence[Point]) -> list[TrendLine]:
    """The six lines, from at least two points."""
    last = points[-1].day
    lines = []
    for window in SLOPE_DAYS:
        slope = robust_slope(points[-window:])
        for days in LEVEL_DAYS:
            level = median(point.value + slope * (last - point.day) for point in points[-days:])
            lines.append(TrendLine(level, slope))
    return lines


class RollingTrend:
    """The blended line as it would have been drawn on each of the last days, with its errors."""

    def __init__(self, points: Sequence[Point], origins: int) -> None:
        self._points = points
        self._first = max(FIRST_ORIGIN, len(points) - origins)
        start = max(FIRST_ORIGIN, self._first - _TRIALS)
        known = range(start, len(points) + 1)
        self._lines = {count: candidate_lines(points[:count]) for count in known}
        self._scores = {count: self._running_scores(count) for count in known}

    def line(self) -> TrendLine:
        """The line from all days."""
        return self._blended(len(self._points))

    def errors(self) -> list[ForecastError]:
        """What the blended lines of earlier days were off by, 1 to 7 days ahead."""
        found = []
        for count in range(self._first, len(self._points)):
            line = self._blended(count)
            for index, days in self._targets(count):
                found.append(ForecastError(days, self._points[index].value - line.after(days)))
        return found

    def _targets(self, count: int) -> list[tuple[int, int]]:
        """Which points were still to come when `count` were known, and how many days ahead each was."""
        last = self._points[count - 1].day
        upcoming = range(count, min(count + HORIZON, len(self._points)))
        return [(index, days) for index in upcoming if (days := self._points[index].day - last) <= HORIZON]

    def _running_scores(self, count: int) -> list[list[float]]:
        """What the candidates of an origin are off by in sum, up to each of its targets."""
        lines = self._lines[count]
        scores = [[0.0] * len(lines)]
        for index, days in self._targets(count):
            value = self._points[index].value
            scores.append(
                [total + abs(value - line.after(days)) for total, line in zip(scores[-1], lines, strict=True)]
            )
        return scores

    def _blended(self, count: int) -> TrendLine:
        lines = self._lines[count]
        weights = self._weights(count)
        total = sum(weights)
        level = sum(weight * line.level for weight, line in zip(weights, lines, strict=True)) / total
        slope = sum(weight * line.slope for weight, line in zip(weights, lines, strict=True)) / total
        return TrendLine(level, slope)

    def _weights(self, count: int) -> list[float]:
        """How much each candidate counts, by what was known when `count` points were."""
        known = [[0.0] * len(self._lines[count])]
        for origin in range(max(min(self._lines), count - _TRIALS), count):
            scores = self._scores[origin]
            known.append(scores[min(count - origin, len(scores) - 1)])
        sums = [sum(each) for each in zip(*known, strict=True)]
        mean = sum(sums) / len(sums)
        if mean == 0:
            return [1.0] * len(sums)
        return [1 / (total / mean + _SMALLEST_SCORE) ** _POWER for total in sums]
