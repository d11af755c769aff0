"""How good forecasts of a subnet's use are: podtide's beside simple ones, on a real trace and on drawn histories.

Every forecast is made from what was known on a day, its origin, and compared with the days that followed: no forecast sees
what it is scored on. The simple ones are what people do by hand: the last value, the mean growth since the beginning, and
straight lines through two weeks.
"""

from collections.abc import Callable, Sequence
from csv import DictReader
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean, linear_regression, median

from msgspec import Struct

from podtide.core.forecast.daily_maxima import DayMaximum
from podtide.core.forecast.usage_forecast import YEAR_DAYS, UsageModel, usage_model

TRACE = Path(__file__).parent.parent / "bench" / "data" / "pods-by-hour.csv"
HOURS = 24
FIRST_ORIGIN = 10
"""With how many days the first forecast is made."""
HORIZON = 7
_FIRST_DAY = date(2026, 1, 5)
_TWO_WEEKS = 14
_STEP_CHANCE, _LAUNCH_CHANCE = 0.12, 0.06
_SATURDAY = 5

History = Sequence[int]
Forecast = Callable[[History], Callable[[int], float]]
"""From a history to the value so many days after its end."""


def trace_maxima() -> list[int]:
    """The real trace's maximum of each day."""
    with TRACE.open(newline="") as file:
        hourly = [int(row["pods"]) for row in DictReader(file)]
    return [max(hourly[begin : begin + HOURS]) for begin in range(0, len(hourly), HOURS)]


def last_value(history: History) -> Callable[[int], float]:
    """Use stays what it is."""
    return lambda _days: history[-1]


def drift(history: History) -> Callable[[int], float]:
    """Use grows from the last value by the mean growth of all days."""
    growth = (history[-1] - history[0]) / (len(history) - 1)
    return lambda days: history[-1] + growth * days


def least_squares(history: History) -> Callable[[int], float]:
    """The least-squares line through the last 14 days."""
    recent = history[-_TWO_WEEKS:]
    slope, begin = linear_regression(range(len(recent)), recent)
    return lambda days: begin + slope * (len(recent) - 1 + days)


def theil_sen(history: History) -> Callable[[int], float]:
    """The line through the last 14 days with the median of all slopes between two of them."""
    recent = list(enumerate(history[-_TWO_WEEKS:]))
    slope = median((later - value) / (end - day) for (day, value), (end, later) in combinations(recent, 2))
    begin = median(value - slope * day for day, value in recent)
    return lambda days: begin + slope * (len(recent) - 1 + days)


def podtide(history: History) -> Callable[[int], float]:
    """The forecast of the product."""
    return model_of(history).value


BASELINES: dict[str, Forecast] = {
    "last value": last_value,
    "drift": drift,
    "least squares, 14 days": least_squares,
    "Theil-Sen, 14 days": theil_sen,
}


def model_of(history: History) -> UsageModel:
    """The product's model of a history, with its band."""
    return usage_model(
        tuple(DayMaximum(_FIRST_DAY + timedelta(days=number), most) for number, most in enumerate(history))
    )


class Errors(Struct, frozen=True):
    """Mean absolute errors, in addresses."""

    a_week_ahead: float
    within_a_week: float
    """Of 1 to 7 days ahead."""


class BandScores(Struct, frozen=True):
    """How good the forecast is as a distribution, 1 to 7 days ahead."""

    coverage: float
    """The part of all days whose value was within the band of 90 %."""
    width: float
    pinball_half: float
    pinball_nine_tenths: float


def origins(days: int, every: int = 1) -> range:
    """The lengths of history that forecasts are made from, such that a week follows each."""
    return range(FIRST_ORIGIN, days - HORIZON + 1, every)


def errors(forecast: Forecast, histories: Sequence[History], every: int = 1) -> Errors:
    """How far off a forecast was on the way through histories."""
    far, all_of_them = [], []
    for history in histories:
        for known in origins(len(history), every):
            value = forecast(history[:known])
            off = [abs(history[known - 1 + days] - value(days)) for days in range(1, HORIZON + 1)]
            far.append(off[-1])
            all_of_them += off
    return Errors(fmean(far), fmean(all_of_them))


def band_scores(histories: Sequence[History], every: int = 1) -> BandScores:
    """How good the product's band was on the way through histories."""
    within, widths, half, nine_tenths = [], [], [], []
    for history in histories:
        for known in origins(len(history), every):
            model = model_of(history[:known])
            for days in range(1, HORIZON + 1):
                truth, low, high = history[known - 1 + days], model.lowest(days), model.highest(days)
                within.append(low <= truth <= high)
                widths.append(high - low)
                half.append(pinball(0.5, model.value(days), truth))
                nine_tenths.append(pinball(0.9, model.quantile(0.9, days), truth))
    return BandScores(fmean(within), fmean(widths), fmean(half), fmean(nine_tenths))


def pinball(part: float, forecast: float, truth: float) -> float:
    """The loss of a quantile: what lies above it costs `part` for each address, what lies below it the rest."""
    return max(part * (truth - forecast), (part - 1) * (truth - forecast))


class DateScore(Struct, frozen=True):
    """How good dates were: of histories that reached a level so many days after the forecast was made."""

    known: int
    """Days of history."""
    error_days: float
    """The median absolute error of the date; one that is not within a year counts as a year."""
    within: float
    """The part of all dates that came between the earliest and the latest."""


def date_score(histories: Sequence[History], known: int, ahead: int) -> DateScore:
    """How good dates are for the level that each history reaches for the first time about `ahead` days on."""
    off, within = [], []
    for history in histories:
        level = max(history[: known + ahead])
        truth = next(day for day, value in enumerate(history) if value >= level) - (known - 1)
        if truth <= 0:
            continue  # it was there before the forecast: a history that fell or rested since
        model = model_of(history[:known])
        expected, earliest, latest = (
            next((day for day in range(1, YEAR_DAYS + 1) if curve(day) >= level), YEAR_DAYS)
            for curve in (model.value, model.highest, model.lowest)
        )
        off.append(abs(expected - truth))
        within.append(earliest <= truth <= latest)
    return DateScore(known, median(off), fmean(within))


def _linear(days: int, random: Random) -> list[float]:
    begin, growth = random.uniform(500, 2_000), random.uniform(1, 8)
    return [begin + growth * day + random.gauss(0, 20) for day in range(days)]


def _steps(days: int, random: Random) -> list[float]:
    """Services come one after the other, and stay."""
    level, values = random.uniform(500, 2_000), []
    for _ in range(days):
        level += random.uniform(20, 150) if random.random() < _STEP_CHANCE else 0
        values.append(level + random.gauss(0, 12))
    return values


def _weekly(days: int, random: Random) -> list[float]:
    begin, growth, less = random.uniform(500, 2_000), random.uniform(1, 6), random.uniform(30, 120)
    return [begin + growth * day - less * (day % 7 >= _SATURDAY) + random.gauss(0, 12) for day in range(days)]


def _launch_days(days: int, random: Random) -> list[float]:
    """Now and then a day on which much more runs than before and after."""
    begin, growth = random.uniform(500, 2_000), random.uniform(0, 4)
    return [
        begin
        + growth * day
        + (random.uniform(100, 400) if random.random() < _LAUNCH_CHANCE else 0)
        + random.gauss(0, 12)
        for day in range(days)
    ]


def _decline(days: int, random: Random) -> list[float]:
    begin, fall = random.uniform(1_500, 2_000), random.uniform(0.5, 5)
    return [begin - fall * day + random.gauss(0, 20) for day in range(days)]


def _noise(days: int, random: Random) -> list[float]:
    level = random.uniform(500, 2_000)
    return [level + random.gauss(0, 30) for _ in range(days)]


def _wandering(days: int, random: Random) -> list[float]:
    """Each day's change is drawn anew, and stays."""
    level, growth, values = random.uniform(500, 2_000), random.uniform(-2, 6), []
    for _ in range(days):
        level += growth + random.gauss(0, 25)
        values.append(level)
    return values


_GENERATORS: dict[str, Callable[[int, Random], list[float]]] = {
    "linear": _linear,
    "steps": _steps,
    "weekly": _weekly,
    "launch days": _launch_days,
    "decline": _decline,
    "noise": _noise,
    "wandering": _wandering,
}
GENERATORS = tuple(_GENERATORS)


def drawn(generator: str, count: int, days: int) -> list[list[int]]:
    """So many histories of a kind: the same ones every time."""
    seeded = [Random(f"{generator} {number}") for number in range(count)]  # noqa: S311 - for variety, not for secrets
    return [[max(0, round(value)) for value in _GENERATORS[generator](days, random)] for random in seeded]
