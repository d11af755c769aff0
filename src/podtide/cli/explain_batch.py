"""`podtide explain batch`: the ladder, exhaustion and the starved state."""

from fractions import Fraction

import click

from podtide.cli.output import COUNT, FRACTION, output_option, show
from podtide.core.batching import Batching, Reading, Standing, Step, decide_batch, depth_of, ladder
from podtide.core.exact import text
from podtide.core.exhaustion import Thresholds
from podtide.core.scaler import SubnetScaler

USUAL = Batching()


@click.command()
@click.option("--capacity", type=COUNT, required=True, help="Q: usable addresses of the subnet.")
@click.option(
    "--reserved", type=COUNT, required=True, help="R: addresses reserved for nodes, primaries included."
)
@click.option(
    "--containers", type=COUNT, required=True, help="Network containers in the subnet, one per node."
)
@click.option(
    "--owed", type=COUNT, default=0, show_default=True, help="Addresses asked for and not granted yet."
)
@click.option("--batch", type=COUNT, default=USUAL.batch, show_default=True, help="The configured batch.")
@click.option(
    "--min-free",
    type=FRACTION,
    default=USUAL.buffer,
    show_default=text(USUAL.buffer),
    help="The configured buffer: the part of a batch to keep free.",
)
@click.option(
    "--lower",
    type=FRACTION,
    default=USUAL.thresholds.lower,
    show_default=text(USUAL.thresholds.lower),
    help="t: the ladder keeps R under t·Q.",
)
@click.option(
    "--upper",
    type=FRACTION,
    default=USUAL.thresholds.upper,
    show_default=text(USUAL.thresholds.upper),
    help="T: exhausted above T·Q.",
)
@click.option("--in-force", type=COUNT, help="The batch in force so far.  [default: the configured batch]")
@click.option("--exhausted", is_flag=True, help="The subnet is exhausted so far.")
@click.option("--starved", is_flag=True, help="The subnet is starved so far.")
@click.option("--recent", is_flag=True, help="The last change was less than a dwell (30 s) ago.")
@output_option
def batch(  # noqa: PLR0913 - one argument per option
    *,
    capacity: int,
    reserved: int,
    containers: int,
    owed: int,
    batch: int,
    min_free: Fraction,
    lower: Fraction,
    upper: Fraction,
    in_force: int | None,
    exhausted: bool,
    starved: bool,
    recent: bool,
    output: str,
) -> None:
    """Which batch and buffer are in force for a subnet.

    Starved (somebody is owed and nothing is left): batch 1, buffer 0. Exhausted: batch 1, buffer 1. Otherwise a rung of
    a ladder of powers of two: one down while R > t·Q, one up only when R is sure to stay under t·Q.
    """
    configured = Batching(batch, min_free, Thresholds(lower, upper))
    reading = Reading(capacity, reserved, containers, owed)
    depth = depth_of(SubnetScaler(batch if in_force is None else in_force, min_free), configured)
    standing = Standing(exhausted=exhausted, starved=starved, depth=depth)
    decision = decide_batch(standing, reading, configured, 0.0 if recent else configured.dwell_seconds)
    rungs = [rung.batch for rung in ladder(configured)]
    document = {
        "batch": decision.scaler.batch,
        "buffer": decision.scaler.buffer,
        "exhausted": decision.standing.exhausted,
        "starved": decision.standing.starved,
        "step": decision.step,
        "changed": decision.step is not Step.NONE,
        "ladder": rungs,
        "explanation": str(decision),
    }
    show(
        output,
        document,
        (
            str(decision),
            f"  ladder: {' · '.join(map(str, rungs))}; thresholds: {decision.exhaustion.comparison}",
        ),
    )
