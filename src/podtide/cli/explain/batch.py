"""`podtide explain batch`: which batch is in force, from what nodes state, rung by rung."""

import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import click
from msgspec import Struct

from podtide.cli.options.numbers import COUNT, fraction_option
from podtide.cli.output.formats import output_option, show, table
from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.core.subnet.batch import BatchInForce, BatchMove, Rung, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler, SubnetScaler
from podtide.core.subnet.statement import Statement, request_at, stated_demand

USUAL = BatchBounds()
_NODES = re.compile(r"([0-9]{1,9})[x×*]([0-9]{1,9})(?:@([0-9]{1,9}))?")


class AlikeNodes(Struct, frozen=True):
    """A number of nodes with the same demand, and the batch that they state; None is the one in force."""

    count: int
    demand: int
    batch: int | None


class NodesType(click.ParamType[AlikeNodes]):
    """`COUNT×DEMAND[@BATCH]`."""

    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AlikeNodes:
        """The nodes; an error shows an example of how they are written."""
        del param, ctx
        if isinstance(value, AlikeNodes):
            return value
        found = _NODES.fullmatch(value.strip())
        if found is None:
            raise InvalidInput(
                f"--nodes {shortened(value)!r} is refused: give COUNT×DEMAND or COUNT×DEMAND@BATCH, such as 8×15 for "
                "eight nodes of 15 pods, or 8x15@16 for nodes that state batch 16"
            )
        count, demand, batch = found.groups()
        return AlikeNodes(int(count), int(demand), int(batch) if batch else None)


@click.command()
@click.option("--capacity", type=COUNT, required=True, help="Q: usable addresses of the subnet.")
@click.option(
    "--nodes",
    type=NodesType(),
    multiple=True,
    metavar="COUNT×DEMAND[@BATCH]",
    help="Nodes with so many pods each, and the batch they state (default: the one in force). May be repeated.",
)
@click.option(
    "--reserved",
    type=COUNT,
    help="R: addresses reserved, primaries included.  [default: what the nodes take at rest, as far as there is room]",
)
@click.option(
    "--quarantined",
    type=COUNT,
    default=0,
    show_default=True,
    help="Addresses of removed nodes, in quarantine.",
)
@click.option(
    "--owed",
    type=COUNT,
    help="Addresses asked for and not granted yet.  [default: what there is no room for; 0 with --reserved]",
)
@click.option("--batch", type=COUNT, default=USUAL.batch, show_default=True, help="The largest batch.")
@click.option(
    "--min-batch", type=COUNT, default=USUAL.min_batch, show_default=True, help="The smallest batch."
)
@click.option("--fixed", type=COUNT, help="The one batch to use.")
@fraction_option("--buffer", USUAL.buffer, "The configured buffer: the part of a batch to keep free.")
@fraction_option("--lower", USUAL.thresholds.lower, "t: a larger batch must keep R under t·Q.")
@fraction_option("--upper", USUAL.thresholds.upper, "T: exhausted, and the batch is reduced, above T·Q.")
@click.option("--in-force", type=COUNT, help="The batch in force so far.  [default: the largest batch]")
@click.option("--exhausted", is_flag=True, help="The subnet is exhausted so far.")
@click.option("--starved", is_flag=True, help="The subnet is starved so far.")
@click.option(
    "--recent", is_flag=True, help="The last change was a moment ago: nodes may not have answered it."
)
@output_option
def batch(  # noqa: PLR0913 - one argument per option
    *,
    capacity: int,
    nodes: tuple[AlikeNodes, ...],
    reserved: int | None,
    quarantined: int,
    owed: int | None,
    batch: int,
    min_batch: int,
    fixed: int | None,
    buffer: Fraction,
    lower: Fraction,
    upper: Fraction,
    in_force: int | None,
    exhausted: bool,
    starved: bool,
    recent: bool,
    output: str,
) -> None:
    """Which batch and buffer are in force for a subnet.

    For each batch that may be chosen: between which numbers R would come to rest (R⁻ and R⁺), by what nodes state. The
    batch is raised to the largest with R⁺ < t·Q, and lowered when R > T·Q and it does not fit, to the largest smaller one
    with R⁻ < t·Q. Nodes that state another batch than the one in force count as if they never answered it.
    """
    if fixed is not None and min_batch != USUAL.min_batch:
        raise click.UsageError(
            "--fixed and --min-batch exclude each other: a fixed batch has no smallest one."
        )
    bounds = BatchBounds(batch, buffer, Thresholds(lower, upper), min_batch, fixed)
    scaler = (
        SubnetScaler(1, Fraction(0))
        if starved
        else _scaler(bounds.top if in_force is None else in_force, bounds)
    )
    holdings = _holdings(nodes, scaler, bounds)
    at_rest = quarantined + sum(holding.taken * count for holding, count in holdings.items())
    granted = min(capacity, at_rest) if reserved is None else reserved
    lacking = at_rest - granted if reserved is None else 0
    reading = SubnetReading(
        capacity=capacity,
        reserved=granted,
        containers=sum(holdings.values()),
        owed=lacking if owed is None else owed,
        ungoverned=quarantined,
        holdings=holdings,
    )
    standing = BatchInForce(
        scaler=scaler, exhausted=exhausted, starved=starved, age_seconds=0.0 if recent else float("inf")
    )
    decision = decide_batch(standing, reading, bounds)
    document = {
        "batch": decision.scaler.batch,
        "buffer": decision.scaler.buffer,
        "exhausted": decision.exhausted,
        "starved": decision.starved,
        "step": decision.step,
        "changed": decision.step is not BatchMove.NONE,
        "rungs": [
            {
                "batch": rung.scaler.batch,
                "buffer": rung.scaler.buffer,
                "least": rung.expected.least,
                "most": rung.expected.most,
                "fits": rung.fits,
            }
            for rung in decision.rungs
        ],
        "explanation": str(decision),
    }
    lines = [
        str(decision),
        f"  thresholds: {decision.exhaustion.comparison}",
        *(f"  {line}" for line in table(_rows(decision.rungs, capacity, decision.scaler))),
    ]
    show(output, document, lines)


def _scaler(batch: int, bounds: BatchBounds) -> SubnetScaler:
    Scaler(batch, bounds.buffer)  # refuses what no pool can be sized by
    return SubnetScaler(batch, min(bounds.buffer, Fraction(1)) if batch == 1 else bounds.buffer)


def _holdings(
    nodes: Iterable[AlikeNodes], in_force: SubnetScaler, bounds: BatchBounds
) -> Counter[ContainerDemand]:
    holdings: Counter[ContainerDemand] = Counter()
    for alike in nodes:
        by = in_force if alike.batch is None else _scaler(alike.batch, bounds)
        scaler = Scaler(by.batch, by.buffer, DEFAULT_MAX_IPS)
        request = request_at(alike.demand, scaler, 1)
        statement = Statement(
            demand=alike.demand,
            batch=by.batch,
            buffer=by.buffer,
            max_ips=DEFAULT_MAX_IPS,
            primaries=1,
            request=request,
            top=bounds.top,
        )
        holdings[ContainerDemand(stated_demand(statement), 1 + request)] += alike.count
    return holdings


def _rows(rungs: tuple[Rung, ...], capacity: int, in_force: SubnetScaler) -> list[list[str]]:
    """A line for each rung, largest first."""
    rows = [["BATCH", "R⁻", "R⁺", "OF Q", "FITS", ""]]
    for rung in reversed(rungs):
        least, most = (
            f"{count * 100 / capacity:.1f} %" for count in (rung.expected.least, rung.expected.most)
        )
        rows.append(
            [
                str(rung.scaler.batch),
                str(rung.expected.least),
                str(rung.expected.most),
                least if least == most else f"{least} … {most}",
                "yes" if rung.fits else "no",
                "in force" if rung.scaler == in_force else "",
            ]
        )
    return rows
