"""The condition that says on which day a subnet runs out, when it is worth a write, and when an Event. No I/O.

A forecast is made anew every hour, and its date moves a little with every day that passes. Each write of a ClusterSubnet
reaches every agent of the subnet, and none of them reads this. So the condition stays as it was written until the date
has moved by a tenth of the time that is left, and by a whole day at least: a date in a hundred days by ten, one of next
week by one. A date beyond a year counts as one a year and a day away, so that one at the edge does not come and go.

What changes at once is the reason: the date has come within the warning (`Soon`), or the subnet is full (`Full`).
"""

from datetime import date, timedelta

from msgspec import Struct

from podtide.core.forecast.usage_forecast import YEAR_DAYS, Level, LevelForecast, UsageForecast
from podtide.core.subnet.count_text import count_text
from podtide.resources.cluster_subnet import ClusterSubnetStatus
from podtide.resources.conditions import Condition, ConditionStatus

RUNS_OUT = "RunsOut"
"""The condition: whether all addresses of the subnet are reserved within a year. Set once there is a week of history."""
RUNS_OUT_SOON = "RunsOutSoon"
"""The reason of the Event that the date has come within the warning."""
_SOON, _LATER, _NOT_WITHIN_A_YEAR, _FULL = "Soon", "Later", "NotWithinAYear", "Full"
_ALARMING = frozenset({_SOON, _FULL})
_PART_OF_TIME_LEFT = 10


class SubnetForecast(Struct, frozen=True):
    """What was forecast for a subnet."""

    reserved: UsageForecast
    """As it is."""
    need: UsageForecast
    """With batch 1."""

    @property
    def capacity(self) -> LevelForecast | None:
        """When all addresses are reserved; None where no date is named."""
        return self.reserved.reaching(Level.CAPACITY)


class RunOutNotice(Struct, frozen=True):
    """What the status of a ClusterSubnet says of the forecast."""

    runs_out: str
    """The date; "" for none."""
    condition: Condition


def run_out_notice(
    before: ClusterSubnetStatus, forecast: SubnetForecast, warning_days: float, generation: int, now: str
) -> RunOutNotice | None:
    """What the status is to say from now on; None if what it says is still near enough, or no date is named."""
    if (reached := forecast.capacity) is None:
        return None
    today = forecast.reserved.as_of
    day = reached.since or reached.expected
    reason = _reason(reached, today, warning_days)
    shown = run_out_in(before)
    if shown is not None and _is_kept(shown.reason, _shown_day(before), reason, day, today):
        return None
    return RunOutNotice(
        runs_out="" if day is None else day.isoformat(),
        condition=Condition(
            type=RUNS_OUT,
            status=ConditionStatus.FALSE if day is None else ConditionStatus.TRUE,
            last_transition_time=now,
            reason=reason,
            message=_message(reached, forecast),
            observed_generation=generation,
        ),
    )


def run_out_warning(before: ClusterSubnetStatus, after: ClusterSubnetStatus) -> str:
    """The message of the Event that the subnet runs out soon; "" if it was known before, or does not."""
    shown, told = run_out_in(before), run_out_in(after)
    if told is None or told.reason not in _ALARMING or (shown is not None and shown.reason in _ALARMING):
        return ""
    return told.message


def run_out_in(status: ClusterSubnetStatus) -> Condition | None:
    """The condition in a status."""
    return next((each for each in status.conditions if each.type == RUNS_OUT), None)


def _reason(reached: LevelForecast, today: date, warning_days: float) -> str:
    if reached.since is not None:
        return _FULL
    if reached.expected is None:
        return _NOT_WITHIN_A_YEAR
    return _SOON if (reached.expected - today).days <= warning_days else _LATER


def _is_kept(shown_reason: str, shown: date | None, reason: str, day: date | None, today: date) -> bool:
    """Whether what was said is still near enough."""
    if (reason in _ALARMING and reason != shown_reason) or (shown_reason == _FULL and reason != _FULL):
        return False
    if reason == _FULL:
        return True
    beyond = today + timedelta(days=YEAR_DAYS + 1)
    moved = abs(((day or beyond) - (shown or beyond)).days)
    left = ((day or beyond) - today).days
    return moved < max(1, left / _PART_OF_TIME_LEFT)


def _shown_day(status: ClusterSubnetStatus) -> date | None:
    """The date in a status; None too where somebody wrote what is not one."""
    try:
        return date.fromisoformat(status.runs_out)
    except ValueError:
        return None


def _message(reached: LevelForecast, forecast: SubnetForecast) -> str:
    capacity = count_text(reached.addresses)
    growth = forecast.reserved.growth_per_day or 0.0
    basis = f"{growth:+.1f} a day; {forecast.reserved.basis}"
    if reached.since is not None:
        return f"all {capacity} addresses were reserved on {reached.since.isoformat()}; {basis}"
    if reached.expected is None:
        return f"the {capacity} addresses are not all reserved within a year; {basis}"
    return (
        f"all {capacity} addresses are reserved on {reached.expected.isoformat()} (at 90 % between "
        f"{_day(reached.earliest)} and {_day(reached.latest)}){_need(forecast.need)}; {basis}"
    )


def _need(need: UsageForecast) -> str:
    reached = need.reaching(Level.CAPACITY)
    if reached is None:
        return ""
    return f", with batch 1 {_on(reached.since or reached.expected)}"


def _on(day: date | None) -> str:
    return "not within a year" if day is None else f"on {day.isoformat()}"


def _day(day: date | None) -> str:
    return "a year from now" if day is None else day.isoformat()
