"""How weekdays differ: what a subnet uses above or below the mean of its week, once three weeks show that it does.

Each day is compared with the mean of the seven days around it, which holds every weekday once, so a trend does not look
like a pattern. A weekday's term is the median of these differences over the last eight weeks. It is used only if it
would have told a fifth of them beforehand, each from the other weeks: what is noise in one week does not come back in the
next, and a term made of noise would make every forecast worse.
"""

from collections.abc import Sequence
from statistics import median

from podtide.core.forecast.usage_trend import Point

WEEK = 7
_HALF_WEEK = 3
_LEAST_WEEKS = 2
"""One week can be checked only against another."""
_LEAST_DAYS = 3 * WEEK
_MOST_DAYS = 8 * WEEK
_UNEXPLAINED = 0.8

WeeklyPattern = tuple[float, ...]
"""For each of seven days what it is above the mean of its week, by the day's number modulo seven; sums up to 0."""


def weekly_pattern(points: Sequence[Point]) -> WeeklyPattern | None:
    """The pattern; None with less than three weeks, with too many gaps, and where weekdays do not differ."""
    if points[-1].day - points[0].day + 1 < _LEAST_DAYS:
        return None
    by_weekday = _differences(points[-_MOST_DAYS:])
    if min(map(len, by_weekday)) < _LEAST_WEEKS:
        return None
    without = sum(abs(each) for days in by_weekday for each in days)
    unexplained = sum(
        abs(each - median(days[:week] + days[week + 1 :]))
        for days in by_weekday
        for week, each in enumerate(days)
    )
    if unexplained >= _UNEXPLAINED * without:
        return None
    terms = [median(days) for days in by_weekday]
    mean = sum(terms) / WEEK
    return tuple(term - mean for term in terms)


def _differences(points: Sequence[Point]) -> list[list[float]]:
    """By weekday, what each day is above the mean of the seven days around it, where all seven are known."""
    values = dict(points)
    by_weekday: list[list[float]] = [[] for _ in range(WEEK)]
    for day, value in points:
        around = [values.get(day + offset) for offset in range(-_HALF_WEEK, _HALF_WEEK + 1)]
        known = [each for each in around if each is not None]
        if len(known) == WEEK:
            by_weekday[day % WEEK].append(value - sum(known) / WEEK)
    return by_weekday
