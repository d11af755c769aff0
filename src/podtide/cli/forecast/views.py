"""The two views of a subnet's future: what will be reserved as things are, and what pods will truly need.

Nodes hold more than they need, so that pods start at once; with batch 1 they would hold next to nothing more. A subnet
whose reserved addresses run out this month may have a year left by its true need, and then a smaller batch is the answer.
Where both run out, only more addresses are.
"""

from collections.abc import Iterable
from datetime import date

from msgspec import Struct

from podtide.allocator.recorded_days import RecordedDays
from podtide.core.forecast.daily_maxima import CapacityStep, capacity_steps
from podtide.core.forecast.usage_forecast import UsageForecast, forecast_usage
from podtide.core.subnet.exhaustion import Thresholds


class SubnetViews(Struct, frozen=True, kw_only=True):
    """A subnet's forecasts."""

    network: str = ""
    name: str = ""
    """Both are empty for a history from a file."""
    capacity: int
    thresholds: Thresholds
    reserved: UsageForecast
    need: UsageForecast | None
    """None where nothing is known of the need."""
    capacity_steps: tuple[CapacityStep, ...]
    remarks: tuple[str, ...] = ()


def subnet_views(  # noqa: PLR0913 - what is known, what it is measured by, and whose it is
    days: RecordedDays,
    *,
    capacity: int,
    thresholds: Thresholds,
    today: date,
    network: str = "",
    name: str = "",
    remarks: Iterable[str] = (),
) -> SubnetViews:
    """The forecasts by what was recorded, with the capacity of today."""
    reserved, need = (
        forecast_usage(each, capacity=capacity, thresholds=thresholds, today=today)
        for each in (days.reserved, days.need)
    )
    return SubnetViews(
        network=network,
        name=name,
        capacity=capacity,
        thresholds=thresholds,
        reserved=reserved,
        need=need if days.need else None,
        capacity_steps=capacity_steps(each for each in days.capacities if each[0] <= today),
        remarks=tuple(remarks),
    )
