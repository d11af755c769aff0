"""On which day a subnet reaches its thresholds and its capacity, if it goes on as it did.

    value(h) = line(h) + weekday(h)         the h-th day after the last full one: `usage_trend`, `weekly_pattern`
    band(h)  = value(h) + errors of the past, scaled to h days        `forecast_band`

A level is reached on the first day whose value reaches it; at 90 % no earlier than the first day on which the upper end
of the band does, and no later than the lower end. Each is the first time that one curve passes a level, and at every
day the curves are in order: so are the dates, and a lower level is never reached later than a higher one.

Two refusals are part of the answer. With less than a week of data there is no date: a trend of three days is the
difference between Friday and Monday. And there is none beyond a year, because no error was measured that far ahead.
"""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from enum import StrEnum
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.forecast.daily_maxima import DailySeries, DayMaximum, daily_series
from podtide.core.forecast.forecast_band import ForecastBand, forecast_band
from podtide.core.forecast.usage_trend import (
    FIRST_ORIGIN,
    HORIZON,
    ForecastError,
    Point,
    RollingTrend,
    TrendLine,
)
from podtide.core.forecast.weekly_pattern import WEEK, WeeklyPattern, weekly_pattern
from podtide.core.subnet.exhaustion import Thresholds

LEAST_DAYS = 7
"""With fewer full days no date is named."""
YEAR_DAYS = 365
_ORIGINS = 90
"""From how many days of the past forecasts are tried: a season. Older errors are those of another growth."""
_ROUNDING = 1e-6
"""In addresses: a value that misses a level by less reaches it."""


class Level(StrEnum):
    """What a subnet may reach."""

    LOWER = "lower threshold"
    UPPER = "upper threshold"
    CAPACITY = "capacity"


class LevelForecast(Struct, frozen=True, kw_only=True):
    """When a level is reached. A date that is None is not within a year."""

    level: Level
    addresses: int
    """The least number of addresses that reaches it."""
    since: date | None = None
    """The day on which it was reached, where it is reached already. There are no dates then."""
    expected: date | None = None
    earliest: date | None = None
    latest: date | None = None
    """Between these at 90 %."""


class UsageForecast(Struct, frozen=True, kw_only=True):
    """What comes of a subnet's use, and what that rests on."""

    as_of: date
    """The day from which it was made, which is not over."""
    last: DayMaximum | None
    """The last full day."""
    growth_per_day: float | None
    """None where no date is named."""
    weekdays: tuple[float, ...]
    """What Monday to Sunday are above the mean of their week; empty where no pattern was found."""
    levels: tuple[LevelForecast, ...]
    """By the number of addresses; empty where no date is named."""
    basis: str
    """What it rests on, or why no date is named: a sentence."""
    left_out: tuple[str, ...]
    """What of the history was left out, and why."""

    def reaching(self, level: Level) -> LevelForecast | None:
        """The forecast of one level; None where no date is named."""
        return next((each for each in self.levels if each.level is level), None)


class UsageModel(Struct, frozen=True):
    """What a series of days goes on as: a line, weekdays, and a band around them."""

    line: TrendLine
    weekdays: WeeklyPattern | None
    band: ForecastBand
    errors: tuple[ForecastError, ...]
    base: int
    """What every value counts from."""

    def value(self, days_ahead: int) -> float:
        """The forecast for a day, counted from the last full one."""
        pattern = self.weekdays[days_ahead % WEEK] if self.weekdays else 0.0
        return self.base + self.line.after(days_ahead) + pattern

    def quantile(self, part: float, days_ahead: int) -> float:
        """The number that the value stays below with this probability."""
        return self.value(days_ahead) + self.band.quantile(part, days_ahead)

    def lowest(self, days_ahead: int) -> float:
        """The lower end of the band."""
        return self.value(days_ahead) + self.band.below(days_ahead)

    def highest(self, days_ahead: int) -> float:
        """The upper end of the band."""
        return self.value(days_ahead) + self.band.above(days_ahead)


def usage_model(days: tuple[DayMaximum, ...]) -> UsageModel:
    """The model of full days in order: at least seven of them."""
    base, last = days[0].most, days[-1].day
    points = [Point((day - last).days, float(most - base)) for day, most in days]
    pattern = weekly_pattern(points)
    if pattern:
        points = [Point(day, value - pattern[day % WEEK]) for day, value in points]
    trend = RollingTrend(points, _ORIGINS)
    errors = trend.errors()
    band = forecast_band(errors, min(len(points) - FIRST_ORIGIN, _ORIGINS))
    return UsageModel(trend.line(), pattern, band, tuple(errors), base)


def forecast_usage(
    days: Iterable[DayMaximum], *, capacity: int, thresholds: Thresholds, today: date
) -> UsageForecast:
    """When the thresholds and the capacity are reached. `today` is not over; days may come in any order."""
    if capacity < 1:
        raise InvalidInput(f"capacity {capacity} is too small: a subnet has at least 1 usable address")
    series = daily_series(days, today)
    last = series.days[-1] if series.days else None
    if len(series.days) < LEAST_DAYS:
        return UsageForecast(
            as_of=today,
            last=last,
            growth_per_day=None,
            weekdays=(),
            levels=(),
            basis=_too_little(len(series.days)),
            left_out=series.left_out,
        )
    model = usage_model(series.days)
    counts = {
        Level.LOWER: ceil(thresholds.lower * capacity),
        Level.UPPER: ceil(thresholds.upper * capacity),
        Level.CAPACITY: capacity,
    }
    return UsageForecast(
        as_of=today,
        last=last,
        growth_per_day=model.line.slope,
        weekdays=_by_weekday(model.weekdays, series.days[-1].day),
        levels=tuple(_level(level, count, model, series, today) for level, count in counts.items()),
        basis=_basis(series, model),
        left_out=series.left_out,
    )


def _level(level: Level, count: int, model: UsageModel, series: DailySeries, today: date) -> LevelForecast:
    if (since := _reached_since(count, series)) is not None:
        return LevelForecast(level=level, addresses=count, since=since)
    last = series.days[-1].day
    days = range((today - last).days, (today - last).days + YEAR_DAYS + 1)

    def first(curve: Callable[[int], float]) -> date | None:
        reached = next((ahead for ahead in days if curve(ahead) >= count - _ROUNDING), None)
        return None if reached is None else last + timedelta(days=reached)

    return LevelForecast(
        level=level,
        addresses=count,
        expected=first(model.value),
        earliest=first(model.highest),
        latest=first(model.lowest),
    )


def _reached_since(count: int, series: DailySeries) -> date | None:
    """The first of the last days in a row that all reached the level; None if the last of them did not."""
    since = None
    for day, most in reversed((*series.days, *filter(None, [series.running]))):
        if most >= count:
            since = day
        elif series.running is None or day != series.running.day:
            break
    return since


def _by_weekday(pattern: WeeklyPattern | None, last: date) -> tuple[float, ...]:
    if pattern is None:
        return ()
    return tuple(pattern[(weekday - last.weekday()) % WEEK] for weekday in range(WEEK))


def _too_little(days: int) -> str:
    there = {0: "is no full day", 1: "is 1 full day"}.get(days, f"are {days} full days")
    return f"no date is named: there {there} of history, and it takes {LEAST_DAYS}"


def _basis(series: DailySeries, model: UsageModel) -> str:
    days = series.days
    missing = f", {series.missing} missing" if series.missing else ""
    weekdays = "with a term for each weekday" if model.weekdays else "without a weekly pattern"
    far = [abs(error.off) for error in model.errors if error.days_ahead == HORIZON]
    words = (
        f"rests on the maxima of {len(days)} days, {days[0].day.isoformat()} to {days[-1].day.isoformat()}"
        f"{missing}, {weekdays}"
    )
    if not far:
        return f"{words}; too few to try a forecast of a week on them"
    tried = "once" if len(far) == 1 else f"from {len(far)} days"
    return f"{words}; a week ahead, tried {tried} of them, it was off by {sum(far) / len(far):.0f} on average"
