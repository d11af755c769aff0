"""`podtide explain assign`: what an IPAM configuration means, down to the next address."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from podtide.cli.output import output_option, show, warn
from podtide.cni.explain import ExplainedAssignment, explain_assign
from podtide.core.errors import InvalidConfig


@click.command()
@click.option(
    "--ipam",
    required=True,
    metavar="FILE",
    help="The IPAM object, the CNI configuration it is in, or a NetworkAttachmentDefinition, as JSON; - reads stdin.",
)
@click.option("--taken", default="", metavar="IP,IP", help="Addresses that are taken already.")
@output_option
def assign(*, ipam: str, taken: str, output: str) -> None:
    """Which address the next pod on a secondary network gets.

    The lowest free one within the first and the last usable, start and end, less excludes and gateway.
    """
    answer = explain_assign(_read(ipam), [address for address in taken.split(",") if address.strip()])
    warn(answer.warnings)
    show(output, answer, _lines(answer))


def _read(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InvalidConfig(
            f"cannot read --ipam {source}: {error.strerror}; give a readable file, or - for stdin"
        ) from None


def _lines(answer: ExplainedAssignment) -> Iterable[str]:
    for part in answer.ranges:
        yield f"{part.address}/{part.prefix_length} from {part.range}"
        if part.slice is not None:
            yield f"  slice {part.slice}, the first with a free address"
        yield f"  usable {part.first} to {part.last}: {part.capacity} of {part.size} addresses, {part.taken} taken"
        withheld = {
            "start and end": part.withheld_by_ends,
            "excludes": part.withheld_by_excludes,
            "the gateway": part.withheld_by_gateway,
        }
        yield from (f"  {count} withheld by {reason}" for reason, count in withheld.items() if count)
    yield from (f"{address} (static)" for address in answer.static)
