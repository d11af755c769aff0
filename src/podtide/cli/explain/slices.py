"""`podtide explain slices`: which node gets which part of a secondary network."""

from collections import Counter

import click

from podtide.cli.options.names import require_object_name
from podtide.cli.output.formats import output_option, show, warn
from podtide.core.errors import InvalidSlice
from podtide.core.networks.slices import Slicing, assign_slices, parse_slice_size
from podtide.core.ranges import parse_range


@click.command()
@click.option(
    "--range", "range_", required=True, metavar="CIDR", help="The network's range: a CIDR, or A-B/length."
)
@click.option("--slice-size", required=True, metavar="/LENGTH", help="How large a node's part is: /24 or 24.")
@click.option("--nodes", required=True, metavar="A,B,…", help="The nodes, in the order they joined.")
@output_option
def slices(*, range_: str, slice_size: str, nodes: str, output: str) -> None:
    """Which slice of a secondary network each node gets.

    The first free slice in address order. JSON is a list of {node, slice} in that order; a node for which no slice is
    left has null and comes last.
    """
    parsed = parse_range(range_)
    slicing = Slicing(parsed.range, parse_slice_size(slice_size, parsed.range))
    names = [name for node in nodes.split(",") if (name := node.strip())]
    if not names:
        raise InvalidSlice(
            f"--nodes {nodes!r} contains no name: give names separated by commas, such as a,b,c"
        )
    for name in names:
        require_object_name(name, "--nodes")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InvalidSlice(
            f"--nodes names {', '.join(twice)} more than once: a node has one slice of a range"
        )
    plan = assign_slices(slicing, (), names)
    warn(parsed.warnings)
    assigned = [(assignment.node, str(assignment.slice)) for assignment in plan.assignments]
    document = [
        {"node": node, "slice": part} for node, part in [*assigned, *((node, None) for node in plan.waiting)]
    ]
    width = max(map(len, names))
    show(
        output,
        document,
        (
            f"{parsed.range} has {slicing.count} slices of /{slicing.prefix_length}",
            *(f"  {node:<{width}}  {part}" for node, part in assigned),
            *(f"  {node:<{width}}  waits: no slice is left" for node in plan.waiting),
        ),
    )
