"""How a subnet was used, and what is forecast: by the allocator's records, without which there is nothing to say.

A forecast of two years of days takes a moment of a core, so it is made in a thread and kept for some minutes.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar, get_args

from msgspec.structs import replace

from podtide.allocator.errors import AllocatorError, NoSuchSubnet
from podtide.allocator.port import Allocator
from podtide.allocator.recorded_days import RecordedDays, day_of, days_since, recorded_days
from podtide.allocator.subnets import SubnetUsage, UsageStep
from podtide.core.errors import InvalidInput
from podtide.core.forecast.daily_maxima import daily_series
from podtide.core.forecast.usage_forecast import (
    LEAST_DAYS,
    Level,
    LevelForecast,
    UsageForecast,
    forecast_usage,
    usage_model,
)
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.usage_series import FIVE_SECONDS, MINUTES
from podtide.dashboard.address_answers import no_such_subnet
from podtide.dashboard.answers import ForecastAnswer, ReachedLevel, UsageAnswer, away, bad_question
from podtide.dashboard.page_state import PageState
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds
from podtide.runtime.clock import Clock

T = TypeVar("T")

_HOUR_SECONDS = 3_600.0
_ANSWER_SECONDS = 10.0
_KEPT_SECONDS = 300.0
_MOST_KEPT = 64
_DRAWN_DAYS = 120
_STEPS: dict[str, UsageStep] = {step: step for step in get_args(UsageStep)}
_LEVELS = {Level.LOWER: "lower", Level.UPPER: "upper", Level.CAPACITY: "capacity"}


class HistoryAnswers:
    """Answers about time."""

    def __init__(self, state: PageState, allocator: Allocator | None, clock: Clock) -> None:
        self._state = state
        self._allocator = allocator
        self._clock = clock
        self._forecasts: dict[str, tuple[float, ForecastAnswer]] = {}

    async def usage(self, subnet: str, since: str, until: str, step: str) -> UsageAnswer:
        """How a subnet was used between two times."""
        allocator, network = self._asked(subnet)
        now = self._clock.wall()
        end = _moment("until", until) if until else now
        start = _moment("since", since) if since else end - _HOUR_SECONDS
        asked = _STEPS.get(step)
        if asked is None:
            raise bad_question(f"step {step[:20]!r} is unknown: give one of {', '.join(_STEPS)}")
        if start > end:
            raise bad_question("since is after until: give an earlier time")
        rows = await _answered(
            allocator.usage_history(network, subnet, since=start, until=end, step=asked), subnet
        )
        if rows and rows[0].step_seconds == FIVE_SECONDS.step_seconds:
            minutes = allocator.usage_history(network, subnet, since=start, until=end, step="1m")
            rows = with_readings(rows, await _answered(minutes, subnet))
        return UsageAnswer(
            subnet=subnet,
            step=rows[0].step_seconds if rows else 0,
            time=tuple(int(to_wall_seconds(row.timestamp)) for row in rows),
            capacity=tuple(row.capacity for row in rows),
            reserved=tuple(row.reserved for row in rows),
            demand=tuple(row.demand for row in rows),
            need=tuple(row.need for row in rows),
            owed=tuple(row.owed for row in rows),
            batch=tuple(row.batch for row in rows),
            exhausted=tuple(row.exhausted_seconds for row in rows),
            starved=tuple(row.starved_seconds for row in rows),
        )

    async def forecast(self, subnet: str) -> ForecastAnswer:
        """What is forecast for a subnet, as it was some minutes ago at most."""
        allocator, network = self._asked(subnet)
        now = self._clock.monotonic()
        made_at, known = self._forecasts.get(subnet, (0.0, None))
        if known is not None and now - made_at < _KEPT_SECONDS:
            return known
        wall = self._clock.wall()
        rows = await _answered(
            allocator.usage_history(network, subnet, since=days_since(wall), until=wall, step="1d"), subnet
        )
        capacity = (await _answered(allocator.get_subnet(network, subnet), subnet)).capacity
        thresholds = self._state.thresholds(subnet) or Thresholds()
        answer = await asyncio.to_thread(
            forecast_answer, subnet, recorded_days(rows), capacity, thresholds, day_of(wall)
        )
        self._forecasts.pop(subnet, None)
        self._forecasts[subnet] = now, answer
        while len(self._forecasts) > _MOST_KEPT:
            del self._forecasts[next(iter(self._forecasts))]
        return answer

    def _asked(self, subnet: str) -> tuple[Allocator, str]:
        if subnet not in self._state.subnets:
            raise no_such_subnet(subnet)
        if self._allocator is None:
            raise away(
                "the history of a subnet is the allocator's, and this page was started without one: name it with --allocator or --database"
            )
        network = self._state.network_of(subnet)
        if network is None:
            trouble = self._state.health.allocator.message
            raise away(
                trouble or f"the allocator was not asked for subnet {subnet} yet, or has none of the name"
            )
        return self._allocator, network


def with_readings(rows: Sequence[SubnetUsage], minutes: Sequence[SubnetUsage]) -> tuple[SubnetUsage, ...]:
    """Demand is read once a minute, and finer rows have none: each reading is put into the last row of its minute."""
    readings = {int(to_wall_seconds(each.timestamp)): each for each in minutes if each.demand is not None}
    found = []
    for row in reversed(rows):
        second = int(to_wall_seconds(row.timestamp))
        reading = readings.pop(second - second % MINUTES.step_seconds, None)
        found.append(replace(row, demand=reading.demand, need=reading.need) if reading else row)
    return tuple(reversed(found))


def forecast_answer(
    subnet: str, days: RecordedDays, capacity: int, thresholds: Thresholds, today: date
) -> ForecastAnswer:
    """The forecast of what is reserved, with its band for some days ahead."""
    found = forecast_usage(days.reserved, capacity=max(1, capacity), thresholds=thresholds, today=today)
    series = daily_series(days.reserved, today)
    is_named = len(series.days) >= LEAST_DAYS
    ahead: range = range(0)
    if is_named:
        model, last = usage_model(series.days), series.days[-1].day
        first = (today - last).days
        ahead = range(first, first + _DRAWN_DAYS)
        curves = [
            [max(0.0, curve(day)) for day in ahead] for curve in (model.value, model.lowest, model.highest)
        ]
        moments = tuple(_midnight(last + timedelta(days=day)) for day in ahead)
    else:
        curves, moments = [[], [], []], ()
    return ForecastAnswer(
        subnet=subnet,
        basis=found.basis,
        refused=None if is_named else found.basis,
        days=moments,
        middle=tuple(curves[0]),
        low=tuple(curves[1]),
        high=tuple(curves[2]),
        growth_per_day=found.growth_per_day,
        reaches=tuple(_reached(level, found) for level in found.levels),
    )


def _reached(level: LevelForecast, found: UsageForecast) -> ReachedLevel:
    if level.since is not None:
        words = f"the {level.level} of {level.addresses} is reached since {level.since.isoformat()}"
    elif level.expected is None:
        words = f"the {level.level} of {level.addresses} is not reached within a year of {found.as_of.isoformat()}"
    else:
        earliest, latest = _date(level.earliest), _date(level.latest)
        words = (
            f"the {level.level} of {level.addresses} is reached on {level.expected.isoformat()}; at 90 % "
            f"{f'from {earliest}' if earliest else 'not before a year'} to {latest or 'beyond a year'}"
        )
    return ReachedLevel(
        what=_LEVELS[level.level],
        level=level.addresses,
        date=_date(level.since or level.expected),
        earliest=_date(level.earliest),
        latest=_date(level.latest),
        message=words,
    )


def _date(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _midnight(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def _moment(name: str, text: str) -> float:
    """A time as RFC 3339, or in seconds since 1970."""
    try:
        return (
            float(text)
            if text.replace(".", "", 1).isdecimal() and len(text) < len("2026-11-05T12:00:00Z")
            else to_wall_seconds(text)
        )
    except InvalidTimestamp:
        raise bad_question(
            f"{name} {text[:40]!r} is not a time: give one such as 2026-11-05T12:00:00Z, or seconds since 1970"
        ) from None


async def _answered(asked: Awaitable[T], subnet: str) -> T:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await asked
    except TimeoutError:
        raise away("the allocator does not answer: see that it is up") from None
    except NoSuchSubnet as error:
        raise no_such_subnet(subnet) from error
    except InvalidInput as error:
        raise bad_question(str(error)) from error
    except AllocatorError as error:
        raise away(f"the allocator does not answer: {error}") from error
