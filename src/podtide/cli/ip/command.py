"""`podtide ip`: whose an address is, in node pools and in secondary networks."""

from collections.abc import Iterator

import click
from msgspec import Struct

from podtide.cli.connections.asked_allocator import AskedPlaces, ask_both, places_options
from podtide.cli.ip.address_state import AddressFinding, AddressState
from podtide.cli.ip.facts import gather_address_facts
from podtide.cli.ip.finding import find_address
from podtide.cli.ip.past import HISTORY_BOUND, PastHolder, past_of
from podtide.cli.output.formats import objects_option, rendered, table, table_width, warn
from podtide.cli.output.screen_width import fitted, folded
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, parse_address
from podtide.runtime.clock import SystemClock


class UnknownAddress(InvalidInput):
    """An address that no known subnet or network has."""


class AddressAnswer(Struct, frozen=True, kw_only=True):
    """Everything that is known of an address."""

    address: str
    findings: tuple[AddressFinding, ...]
    history: tuple[PastHolder, ...]
    history_bound: str = HISTORY_BOUND
    """How far back the history can reach."""
    not_asked: str = ""
    """Why the allocator could not be asked; "" if it answered, or was not to be asked."""


@click.command("ip")
@click.argument("address")
@places_options
@watch_options
@objects_option
def ip(*, address: str, places: AskedPlaces, watching: Watching | None, output: str) -> None:
    """Show whose an address is: its subnet, node and pod, its state, since when, and its past.

    Both node pools and secondary networks are searched. If --allocator or --database is given, the allocator is asked
    as well: only it knows which addresses are free, in quarantine or held by other clusters. It only reads.
    """
    asked = parse_address(address)

    async def look() -> str:
        answer = await _look(asked, places)
        if answer.not_asked:
            warn([answer.not_asked])
        return rendered(output, answer, lines_of(answer, output), names_of(answer))

    print_answer(look, watching)


async def _look(address: IPAddress, places: AskedPlaces) -> AddressAnswer:
    async with places.there.cluster() as cluster:
        facts, not_asked = await ask_both(
            places.location,
            lambda allocator: gather_address_facts(
                cluster, allocator, address, places.networks_namespace, SystemClock().wall()
            ),
        )
    findings = find_address(facts)
    if not findings:
        which = (
            "no subnet of the allocator"
            if facts.records is not None
            else "no subnet that nodes of this cluster use"
        )
        advice = (
            "check the address"
            if facts.records is not None
            else "check the address, or name the allocator with --allocator or --database"
        )
        raise UnknownAddress(f"{address} is in {which} and in no secondary network: {advice}")
    return AddressAnswer(address=str(address), findings=findings, history=past_of(facts), not_asked=not_asked)


def names_of(answer: AddressAnswer) -> Iterator[str]:
    """Who has the address: pods, else nodes."""
    for each in answer.findings:
        if each.pod:
            yield f"pod/{each.pod}"
        elif each.node:
            yield f"node/{each.node}"


_COLUMNS = ("SUBNET", "STATE", "NODE", "POD", "SINCE")
_WIDE_COLUMNS = ("CIDR", "CLUSTER", "INTERFACE", "CONTAINER", "GRANT", "POOL", "RESERVATION", "UNTIL")


def lines_of(answer: AddressAnswer, output: str) -> Iterator[str]:
    """A table, a sentence for each finding, and the past."""
    width = table_width(output)
    rows: list[tuple[str, ...]] = [_COLUMNS + _WIDE_COLUMNS if output == "wide" else _COLUMNS]
    for each in answer.findings:
        cells: tuple[str, ...] = (_place(each), each.state, each.node, each.pod, each.since)
        if output == "wide":
            cells += (each.cidr, each.cluster, each.interface, each.container)
            cells += (each.grant, each.pool, each.reservation, each.until)
        rows.append(tuple(cell or "-" for cell in cells))
    yield from table(fitted(rows, width, dispensable=("SINCE",)))
    yield ""
    for each in answer.findings:
        place = (
            "" if each.state is AddressState.HOST or not (each.network or each.subnet) else f"{each.place}: "
        )
        yield from folded("", "  ", f"{answer.address}, {place}{each.words}", width)
    if answer.history:
        yield "before:"
        for past in answer.history:
            yield from folded("  ", "    ", f"{past.time or 'at an unknown time'}  {past.words}", width)
    if output == "wide" or answer.history:
        yield from folded("  ", "  ", f"({answer.history_bound})", width)


def _place(finding: AddressFinding) -> str:
    if finding.subnet:
        return f"{finding.network}/{finding.subnet}" if finding.network else finding.subnet
    return finding.network
