"""`podtide explain request`: the one-step scaling formula."""

from fractions import Fraction

import click

from podtide.cli.options.numbers import COUNT, BoundedCount, fraction_option
from podtide.cli.output.formats import output_option, show, warn
from podtide.core.subnet.scaler import (
    DEFAULT_BATCH,
    DEFAULT_BUFFER,
    DEFAULT_MAX_IPS,
    NodeScaler,
    Scaler,
    SubnetScaler,
    effective_scaler,
)
from podtide.core.subnet.scaling import decide_request

_MOST_PRIMARIES = 65_536
"""No node has as many network containers as it may have addresses."""


@click.command()
@click.option("--demand", type=COUNT, required=True, help="U: pods on the node that need an address.")
@click.option("--batch", type=COUNT, default=DEFAULT_BATCH, show_default=True, help="B: the batch size.")
@fraction_option("--buffer", DEFAULT_BUFFER, "mf: the buffer, the part of a batch to keep free.")
@click.option(
    "--primaries",
    type=BoundedCount(_MOST_PRIMARIES),
    default=0,
    show_default=True,
    help="P: primary addresses of the node's network containers.",
)
@click.option(
    "--max-ips",
    type=COUNT,
    default=DEFAULT_MAX_IPS,
    show_default=True,
    help="Most addresses a node may hold.",
)
@click.option(
    "--exhausted",
    is_flag=True,
    help="Exhausted, and the node is told no batch: batch 1, one address kept free.",
)
@output_option
def request(  # noqa: PLR0913 - one argument per option
    *, demand: int, batch: int, buffer: Fraction, primaries: int, max_ips: int, exhausted: bool, output: str
) -> None:
    """How many addresses a node asks for.

    aligned = B·⌈mf + U/B⌉, and request = min(max, max(aligned - P, U + 1)); with mf = 0 the floor is U.
    """
    stated = Scaler(batch, buffer, max_ips)
    subnet = None if exhausted else SubnetScaler(stated.batch, stated.buffer)
    scaler = effective_scaler(NodeScaler(max_ips=max_ips), subnet, exhausted=exhausted)
    decision = decide_request(demand, scaler, primaries)
    if not exhausted and scaler.batch != batch:
        warn([f"batch {batch} is larger than the node's maximum; {scaler.batch} is used"])
    document = {
        "request": decision.request,
        "aligned": decision.aligned,
        "floor": decision.floor,
        "free": decision.free,
        "short": decision.short,
        "bound": decision.bound,
        "demand": decision.demand,
        "primaries": decision.primaries,
        "batch": scaler.batch,
        "buffer": scaler.buffer,
        "max_ips": scaler.max_ips,
        "m": scaler.minimum_free,
        "M": scaler.maximum_free,
        "explanation": str(decision),
    }
    show(output, document, (str(decision), *(f"  {step}" for step in decision.steps())))
