"""`podtide subnet history`: how a subnet was used, as a chart and a table for people, or as CSV and JSON for programs."""

import csv
import sys
from collections.abc import Iterator, Sequence
from io import StringIO

import click

from podtide.allocator.limits import USAGE_STEPS
from podtide.allocator.subnets import SubnetUsage, UsageStep
from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.options.names import ALLOCATOR_NAME
from podtide.cli.output.formats import formats_option, rendered, table, warn
from podtide.cli.output.screen_width import fitted, screen_width
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.subnet.moment_option import MOMENT
from podtide.cli.subnet.usage_chart import ChartPoint, draw_chart
from podtide.core.errors import InvalidInput
from podtide.core.subnet.count_text import count_text
from podtide.core.subnet.usage_series import DAYS, SERIES, UsageSeries, choose_series
from podtide.resources.timestamps import to_time, to_wall_seconds
from podtide.runtime.clock import SystemClock
from podtide.runtime.durations import format_duration

CSV_COLUMNS = SubnetUsage.__struct_fields__
"""The columns of `-o csv`, which are the fields of the JSON."""
_HEADERS = (
    *(
        "TIME",
        "CAPACITY",
        "RESERVED",
        "MEAN",
        "DEMAND",
        "NEED",
        "ON PODS",
        "IDLE",
        "OWED",
        "CONTAINERS",
        "BATCH",
    ),
    *("EXHAUSTED", "STARVED"),
)
_DISPENSABLE = ("CONTAINERS", "STARVED", "ON PODS", "EXHAUSTED", "OWED", "BATCH", "IDLE")
_MOST_ROWS = 100
"""Rows that a person reads: "auto" chooses a step that has no more of them."""
_USUAL_WIDTH = 80
_HOURS_OF_A_DAY = 24
_NOT_KNOWN = "-"


@click.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@click.option(
    "--since",
    type=MOMENT,
    default="24h",
    show_default=True,
    metavar="WHEN",
    help="From when on: a duration back from now, such as 7d or 12h, or a date or time, such as 2026-11-05.",
)
@click.option(
    "--until", type=MOMENT, default=None, metavar="WHEN", help="Until when, in the same forms. Default: now."
)
@click.option(
    "--step",
    type=click.Choice(USAGE_STEPS),
    default="auto",
    show_default=True,
    help=f"The time that a row stands for. auto: the shortest that reaches back and needs at most {_MOST_ROWS} rows.",
)
@click.option(
    "--chart/--no-chart",
    default=None,
    help="Whether to draw a chart above the table. Default: on a terminal.",
)
@allocator_options
@watch_options
@formats_option("table", "csv", "json", "yaml", about="A table for people; CSV, JSON or YAML for programs.")
def history(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    since: float,
    until: float | None,
    step: UsageStep,
    chart: bool | None,
    location: AllocatorLocation,
    watching: Watching | None,
    output: str,
) -> None:
    """Show how a subnet was used: what was reserved, what its pods needed, and when it was short.

    Times are UTC. Days are kept for two years, quarters of an hour for 90 days, minutes for a day, 5 seconds for an hour.
    """
    has_chart = sys.stdout.isatty() if chart is None else chart

    async def look() -> str:
        now = SystemClock().wall()
        end = now if until is None else until
        if since > end:
            raise InvalidInput(
                f"--since {to_time(since)} is after --until {to_time(end)}: give the earlier one as --since"
            )
        series = _series(step, since, end, now)
        async with location.allocator() as allocator:
            rows = await allocator.usage_history(
                network,
                name,
                since=since,
                until=end,
                step=series.name,  # type: ignore[arg-type]  # the names of series are the steps
            )
        if rows and not series.reaches(since, now):
            warn([_kept_too_short(series, since, now)])
        if output == "csv":
            return _csv(rows)
        nothing = [_nothing(f"{network}/{name}", since, end, now)]
        return rendered(output, rows, _lines(rows, has_chart=has_chart) if rows else nothing)

    print_answer(look, watching)


def _series(step: UsageStep, since: float, until: float, now: float) -> UsageSeries:
    if step == "auto":
        return choose_series(since, until, now, _MOST_ROWS)
    return next(series for series in SERIES if series.name == step)


def _kept_too_short(series: UsageSeries, since: float, now: float) -> str:
    hours = series.kept_seconds // 3_600
    kept = f"{hours // 24} days" if hours > _HOURS_OF_A_DAY else f"{hours}h"
    better = choose_series(since, now, now)
    advice = f": use --step {better.name} for all of that time" if better is not series else ""
    return f"rows of {series.name} are kept for {kept}, and --since is {to_time(since)}{advice}"


def _nothing(subnet: str, since: float, until: float, now: float) -> str:
    if since > now:
        return f"{subnet} has no history from {to_time(since)} on: that time is yet to come"
    return (
        f"{subnet} has no history from {to_time(since)} to {to_time(until)}: it was not there yet, its allocator did not run, "
        "or that is longer ago than is kept"
    )


def _csv(rows: Sequence[SubnetUsage]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows([getattr(row, column) for column in CSV_COLUMNS] for row in rows)
    return text.getvalue()


def _lines(rows: Sequence[SubnetUsage], *, has_chart: bool) -> Iterator[str]:
    width = screen_width()
    if has_chart:
        points = [ChartPoint(to_wall_seconds(row.timestamp), row.step_seconds, row.reserved) for row in rows]
        yield _headline(rows)
        yield from draw_chart(points, (_time(rows[0]), _time(rows[-1])), width or _USUAL_WIDTH)
        yield ""
    yield from table(fitted([_HEADERS, *map(_cells, rows)], width, dispensable=_DISPENSABLE))


def _headline(rows: Sequence[SubnetUsage]) -> str:
    highest = max(rows, key=lambda row: row.reserved)
    share = f" ({100 * highest.reserved // highest.capacity} %)" if highest.capacity else ""
    return (
        f"reserved: at most {highest.reserved} of {count_text(highest.capacity)}{share}, at {_time(highest)}"
    )


def _cells(row: SubnetUsage) -> tuple[str, ...]:
    counts = (row.demand, row.need, row.on_pods, row.idle, row.owed, row.containers, row.batch)
    return (
        *(_time(row), count_text(row.capacity), count_text(row.reserved), f"{row.reserved_mean:.1f}"),
        *(_NOT_KNOWN if count is None else count_text(count) for count in counts),
        *(format_duration(float(round(seconds))) for seconds in (row.exhausted_seconds, row.starved_seconds)),
    )


def _time(row: SubnetUsage) -> str:
    return row.timestamp[:10] if row.step_seconds == DAYS.step_seconds else row.timestamp
