"""Forecasts as text for people, and as a document for programs."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from msgspec import structs

from podtide.cli.forecast.views import SubnetViews
from podtide.cli.output.formats import table
from podtide.core.exact import text
from podtide.core.forecast.usage_forecast import LevelForecast, UsageForecast
from podtide.core.subnet.count_text import count_text
from podtide.core.subnet.exhaustion import Thresholds

_NEVER = "not within a year"
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_RESERVED = "as it is (reserved)"
_NEED = "with batch 1 (true need)"


def forecast_lines(views: SubnetViews) -> Iterator[str]:
    """A subnet's forecasts, as lines."""
    title = f"{views.network}/{views.name}: " if views.name else ""
    yield f"{title}{count_text(views.capacity)} addresses"
    if views.thresholds != Thresholds():
        yield f"  thresholds: {text(views.thresholds.lower)} and {text(views.thresholds.upper)} of them"
    yield from _view_lines(_RESERVED, views.reserved)
    if views.need is None:
        yield f"  {_NEED}: the history has no such figures"
    else:
        yield from _view_lines(_NEED, views.need)
    for step in views.capacity_steps:
        yield (
            f"  the capacity went from {count_text(step.before)} to {count_text(step.after)} on "
            f"{step.day.isoformat()}: dates are for {count_text(views.capacity)}"
        )
    for remark in views.remarks:
        yield f"  {remark}"


def _view_lines(title: str, found: UsageForecast) -> Iterator[str]:
    if found.growth_per_day is None or found.last is None:
        yield f"  {title}: {found.basis}"
    else:
        yield (
            f"  {title}: {count_text(found.last.most)} on {found.last.day.isoformat()}, "
            f"{found.growth_per_day:+.1f} a day"
        )
        rows = [
            ("LEVEL", "ADDRESSES", "REACHED", "EARLIEST (90 %)", "LATEST (90 %)"),
            *(_row(each) for each in found.levels),
        ]
        yield from (f"    {line}" for line in table(rows))
        if found.weekdays:
            each = (f"{name} {above:+.0f}" for name, above in zip(_WEEKDAYS, found.weekdays, strict=True))
            yield f"    weekdays: {', '.join(each)}"
        yield f"    {found.basis}"
    yield from (f"    {words}" for words in found.left_out)


def _row(level: LevelForecast) -> tuple[str, ...]:
    if level.since is not None:
        return str(level.level), count_text(level.addresses), f"since {level.since.isoformat()}", "", ""
    dates = (level.expected, level.earliest, level.latest)
    return str(level.level), count_text(level.addresses), *map(_date, dates)


def _date(day: date | None) -> str:
    return _NEVER if day is None else day.isoformat()


def forecast_document(views: SubnetViews) -> dict[str, Any]:
    """A subnet's forecasts, for programs."""
    return {
        "network": views.network,
        "name": views.name,
        "capacity": views.capacity,
        "lower": text(views.thresholds.lower),
        "upper": text(views.thresholds.upper),
        "reserved": _view_document(views.reserved),
        "need": None if views.need is None else _view_document(views.need),
        "capacity_steps": [step._asdict() for step in views.capacity_steps],
        "remarks": views.remarks,
    }


def _view_document(found: UsageForecast) -> dict[str, Any]:
    last = found.last
    return structs.asdict(found) | {"last": None if last is None else last._asdict()}
