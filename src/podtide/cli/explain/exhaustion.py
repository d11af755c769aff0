"""`podtide explain exhaustion`: two thresholds and their hysteresis."""

from fractions import Fraction

import click

from podtide.cli.options.numbers import COUNT, fraction_option
from podtide.cli.output.formats import output_option, show
from podtide.core.exact import text
from podtide.core.subnet.exhaustion import Thresholds, judge_exhaustion

USUAL = Thresholds()


@click.command()
@click.option("--capacity", type=COUNT, required=True, help="Q: usable addresses of the subnet.")
@click.option(
    "--reserved", type=COUNT, required=True, help="R: addresses reserved for nodes, primaries included."
)
@fraction_option("--lower", USUAL.lower, "t: no longer exhausted below t·Q.")
@fraction_option("--upper", USUAL.upper, "T: exhausted above T·Q.")
@click.option("--exhausted", is_flag=True, help="The subnet is exhausted so far.")
@output_option
def exhaustion(  # noqa: PLR0913 - one argument per option
    *, capacity: int, reserved: int, lower: Fraction, upper: Fraction, exhausted: bool, output: str
) -> None:
    """Whether a subnet is exhausted.

    It turns on when R > T·Q and off when R < t·Q; between the two it stays as it was.
    """
    thresholds = Thresholds(lower, upper)
    answer = judge_exhaustion(
        exhausted=exhausted, reserved=reserved, capacity=capacity, thresholds=thresholds
    )
    document = {
        "exhausted": answer.exhausted,
        "changed": answer.changed,
        "reserved": reserved,
        "capacity": capacity,
        "lower": lower,
        "upper": upper,
        "explanation": str(answer),
    }
    on, off = text(upper * capacity), text(lower * capacity)
    show(output, document, (str(answer), f"  turns on when R > {on}, off when R < {off}; now R = {reserved}"))
