"""`podtide explain assign`: what an IPAM configuration means, down to the next address."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from podtide.cli.output.formats import output_option, show, warn
from podtide.cni.explain import MOST_REPORTED, ExplainedAssignment, explain_assign
from podtide.core.errors import InvalidConfig

_MOST_BYTES = 1 << 20


@click.command()
@click.option(
    "--ipam",
    required=True,
    metavar="FILE",
    help="The IPAM object, the CNI configuration it is in, or a NetworkAttachmentDefinition, as JSON; - reads stdin.",
)
@click.option("--taken", default="", metavar="IP,IP", help="Addresses that are in use already.")
@output_option
def assign(*, ipam: str, taken: str, output: str) -> None:
    """Which address the next pod on a secondary network gets.

    The lowest free one within the first and the last usable, start and end, less excludes and gateway.
    """
    answer = explain_assign(_read(ipam), [address for address in taken.split(",") if address.strip()])
    warn(answer.warnings)
    show(output, answer, _lines(answer))


def _read(source: str) -> bytes:
    try:
        if source == "-":
            text = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidConfig(
            f"cannot read --ipam {source}: {error.strerror}; give a readable file, or - for stdin"
        ) from None
    if len(text) > _MOST_BYTES:
        raise InvalidConfig(
            f"--ipam {source} is larger than {_MOST_BYTES} bytes: no configuration is; give the IPAM object alone"
        )
    return text


def _lines(answer: ExplainedAssignment) -> Iterable[str]:
    for part in answer.ranges:
        yield f"{part.address}/{part.prefix_length} from {part.range}"
        if part.slice is not None:
            yield f"  slice {part.slice}, the first with a free address; a slice keeps its own first and last back"
        counts = f"{_count(part.capacity)} of {_count(part.size)} addresses, {part.taken} taken"
        yield f"  usable {part.first} to {part.last}: {counts}"
        withheld = {
            "start and end": part.withheld_by_ends,
            "excludes": part.withheld_by_excludes,
            "the gateway": part.withheld_by_gateway,
        }
        yield from (f"  {_count(count)} withheld by {reason}" for reason, count in withheld.items() if count)
    yield from (f"{address} (static)" for address in answer.static)


def _count(count: int) -> str:
    return str(count) if count < MOST_REPORTED else "2^53 or more"
