"""`podtide forecast`: on which day a subnet reaches its thresholds and its capacity."""

import asyncio
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import click
from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.allocator.recorded_days import day_of, days_since, recorded_days
from podtide.allocator.subnets import Subnet
from podtide.cli.connections.allocator import AllocatorLocation, optional_allocator_options
from podtide.cli.forecast.usage_file import CAPACITY, read_usage_file
from podtide.cli.forecast.views import SubnetViews, subnet_views
from podtide.cli.forecast.words import forecast_document, forecast_lines
from podtide.cli.options.names import ALLOCATOR_NAME
from podtide.cli.options.numbers import COUNT, FractionType
from podtide.cli.options.paths import ExistingFile
from podtide.cli.output.formats import output_option, rendered
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.core.errors import InvalidInput
from podtide.core.exact import text
from podtide.core.subnet.exhaustion import Thresholds
from podtide.runtime.clock import SystemClock

_USUAL = Thresholds()
_DAY = click.DateTime(["%Y-%m-%d"])


class AskedThresholds(Struct, frozen=True):
    """The thresholds that the command line names; None leaves one as it is."""

    lower: Fraction | None
    upper: Fraction | None

    def beside(self, others: Thresholds) -> Thresholds:
        """With the others where none is named."""
        return Thresholds(
            others.lower if self.lower is None else self.lower,
            others.upper if self.upper is None else self.upper,
        )


@click.command()
@click.argument("network", type=ALLOCATOR_NAME, default="")
@click.argument("name", type=ALLOCATOR_NAME, default="")
@click.option(
    "--history",
    type=ExistingFile(),
    help="A CSV file with the columns timestamp, capacity and reserved, instead of an allocator.",
)
@click.option("--capacity", type=COUNT, help="The capacity to forecast for.  [default: that of today]")
@click.option(
    "--lower",
    type=FractionType(),
    help=f"t: the lower threshold, as a part of the capacity.  [default: the one in force; of a file, {text(_USUAL.lower)}]",
)
@click.option(
    "--upper",
    type=FractionType(),
    help=f"T: the upper threshold, as a part of the capacity.  [default: the one in force; of a file, {text(_USUAL.upper)}]",
)
@click.option(
    "--at",
    type=_DAY,
    metavar="DATE",
    help="Forecast as on this day (UTC), by the days before it.  [default: today; of a file, the day after its last full one]",
)
@optional_allocator_options
@watch_options
@output_option
def forecast(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    history: Path | None,
    capacity: int | None,
    lower: Fraction | None,
    upper: Fraction | None,
    at: datetime | None,
    location: AllocatorLocation | None,
    watching: Watching | None,
    output: str,
) -> None:
    """Tell on which day a subnet reaches its thresholds and its capacity, with a band of 90 %.

    Of the subnet NAME in NETWORK, of all subnets of NETWORK, or of all. It rests on the maximum of each day, and says on
    how many. With less than seven days no date is named, and none beyond a year.
    """
    thresholds = AskedThresholds(lower, upper)
    day = at.date() if at else None
    if history is not None and (location is not None or network):
        raise click.UsageError("--history is read instead of an allocator: name no subnet and no allocator")
    if history is None and location is None:
        raise click.UsageError(
            "say where the history is: either --allocator URL, or --database URL, or --history FILE"
        )

    async def look() -> str:
        today = day_of(SystemClock().wall())
        if location is None:
            assert history
            views = [_of_file(history, capacity, thresholds.beside(_USUAL), day, today)]
        else:
            async with location.allocator() as allocator:
                views = await _of_allocator(allocator, network, name, capacity, thresholds, day or today)
        lines = [line for each in views for line in forecast_lines(each)]
        return rendered(output, [forecast_document(each) for each in views], lines or ["there is no subnet"])

    print_answer(look, watching)


def _of_file(
    path: Path, capacity: int | None, thresholds: Thresholds, at: date | None, today: date
) -> SubnetViews:
    read = read_usage_file(path)
    day = at or read.day_after(today)
    known = [each for _, each in read.days.capacities if _ <= day]
    if capacity is None and not known:
        until = f" on {day} or before" if read.days.capacities else ""
        raise InvalidInput(
            f"{path} has no {CAPACITY}{until}: give --capacity COUNT, or a column of that name"
        )
    return subnet_views(
        read.days,
        capacity=known[-1] if capacity is None else capacity,
        thresholds=thresholds,
        today=day,
        remarks=read.remarks,
    )


async def _of_allocator(  # noqa: PLR0913, PLR0917 - where, which, and by what
    allocator: Allocator,
    network: str,
    name: str,
    capacity: int | None,
    thresholds: AskedThresholds,
    today: date,
) -> list[SubnetViews]:
    subnets = [await allocator.get_subnet(network, name)] if name else await allocator.list_subnets(network)

    from podtide.controller.subnets.batch_decision import bounds_in_force  # noqa: PLC0415 - not for a file

    async def one(subnet: Subnet) -> SubnetViews:
        now = SystemClock().wall()
        in_force = bounds_in_force(await allocator.demand(subnet.network, subnet.name)).thresholds
        rows = await allocator.usage_history(
            subnet.network, subnet.name, since=days_since(now), until=now, step="1d"
        )
        return subnet_views(
            recorded_days(rows),
            capacity=subnet.capacity if capacity is None else capacity,
            thresholds=thresholds.beside(in_force),
            today=today,
            network=subnet.network,
            name=subnet.name,
        )

    return list(await asyncio.gather(*map(one, subnets)))
