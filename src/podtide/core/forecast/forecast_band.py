"""How far the truth may be from a forecast: the band that nine in ten values are to lie in, from errors of the past.

Errors of past forecasts, 1 to 7 days ahead, are brought to one scale: an error so many days ahead grows as a power of the
days, and the power is fitted to the errors themselves. Of the scaled errors the quantiles are taken, for each side the
mean of two: by sign, because use that grows in jumps is above its forecast more often than below; and by size alone,
because few errors say little about the sign.

Errors of overlapping stretches are not independent. In n days there are n/h stretches of h days, and the quantile of so
few is taken for larger than it looks, by the ratio of Student's to the normal quantile, in its usual expansion. So the
band is wide after a week of data, and for dates that are as far away as the history is long. Below two stretches nothing
can be said about their number any more, and the ratio stays what it is for two.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import log
from statistics import NormalDist, fmean

from msgspec import Struct

from podtide.core.forecast.usage_trend import ForecastError

COVERAGE = 0.9
"""The part of all values that is to lie in the band."""
_HIGH = (1 + COVERAGE) / 2
_NORMAL = NormalDist().inv_cdf(_HIGH)
_LEAST_STRETCHES = 2.0
_USUAL_POWER = 0.5
"""The errors of a random walk grow so: taken where there are too few errors to fit it."""
_LEAST_POWER, _MOST_POWER = 0.2, 1.0
_ENOUGH_ERRORS = 5
_ENOUGH_HORIZONS = 3


class ForecastBand(Struct, frozen=True):
    """By how much the truth may be below and above a forecast, for any number of days ahead."""

    errors: tuple[float, ...]
    """Of the past, as they would be one day ahead, in order."""
    sizes: tuple[float, ...]
    """The same without their signs, in order."""
    power: float
    origins: int
    """From how many days these forecasts were made."""

    def quantile(self, part: float, days_ahead: int) -> float:
        """What so large a part of all errors is below. More than half of them: never below 0, and the reverse."""
        if not self.errors:
            return 0.0
        by_sign = quantile(self.errors, part)
        by_size = quantile(self.sizes, abs(2 * part - 1))
        scaled: float = days_ahead**self.power * _widening(self.origins / days_ahead)
        if part < 1 / 2:
            return scaled * (min(0.0, by_sign) - by_size) / 2
        return scaled * (max(0.0, by_sign) + by_size) / 2

    def below(self, days_ahead: int) -> float:
        """The lower end of the band, as a number of 0 or less."""
        return self.quantile(1 - _HIGH, days_ahead)

    def above(self, days_ahead: int) -> float:
        """The upper end of the band."""
        return self.quantile(_HIGH, days_ahead)


def forecast_band(errors: Sequence[ForecastError], origins: int) -> ForecastBand:
    """The band by errors that were made from so many origins."""
    power = _power(errors)
    scaled = sorted(error.off / error.days_ahead**power for error in errors)
    return ForecastBand(tuple(scaled), tuple(sorted(map(abs, scaled))), power, origins)


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which so large a part of all values lies, as far as these tell: between neighbours it is in line."""
    place = part * (len(ordered) + 1) - 1
    if place <= 0:
        return ordered[0]
    if place >= len(ordered) - 1:
        return ordered[-1]
    lower = int(place)
    return ordered[lower] + (place - lower) * (ordered[lower + 1] - ordered[lower])


def _widening(stretches: float) -> float:
    """Student's quantile for so many degrees of freedom over the normal one, to the second order."""
    freedom = max(_LEAST_STRETCHES, stretches)
    first = (_NORMAL**2 + 1) / 4
    second = (5 * _NORMAL**4 + 16 * _NORMAL**2 + 3) / 96
    return 1 + first / freedom + second / freedom**2


def _power(errors: Sequence[ForecastError]) -> float:
    """The power of the days ahead by which errors grow: a least-squares line through the logarithms of their means."""
    sizes: defaultdict[int, list[float]] = defaultdict(list)
    for error in errors:
        sizes[error.days_ahead].append(abs(error.off))
    means = {days: fmean(each) for days, each in sizes.items() if len(each) >= _ENOUGH_ERRORS}
    if len(means) < _ENOUGH_HORIZONS or min(means.values()) == 0:
        return _USUAL_POWER
    days, off = [log(each) for each in means], [log(each) for each in means.values()]
    middle, mean = fmean(days), fmean(off)
    spread = sum((each - middle) ** 2 for each in days)
    power = sum((x - middle) * (y - mean) for x, y in zip(days, off, strict=True)) / spread
    return max(_LEAST_POWER, min(_MOST_POWER, power))
