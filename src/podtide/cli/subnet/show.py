"""`podtide subnet show`: a subnet, which nodes hold most of it, who is owed, and what is in quarantine."""

from collections.abc import Iterator

import click
from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.allocator.subnets import CidrHolders, Debt, Subnet
from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.options.names import ALLOCATOR_NAME
from podtide.cli.output.formats import alarming, counted, objects_option, rendered, table, table_width
from podtide.cli.output.screen_width import fitted
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.shell.known_names import complete_subnets
from podtide.cli.subnet.details import draining_lines, holders_of, sentence_of
from podtide.core.subnet.count_text import count_text

_MOST_NODES = 10


class SubnetHolder(Struct, frozen=True, kw_only=True):
    """A node with a container in the subnet."""

    cluster: str
    node: str
    held: int
    """Addresses for pods."""
    wanted: int
    owed: int
    primary: str
    container: str


class SubnetAnswer(Struct, frozen=True, kw_only=True):
    """Everything about one subnet, as far as the token may see it."""

    subnet: Subnet
    held: int
    """Addresses that nodes have, primaries included."""
    quarantined: int
    owed: tuple[Debt, ...]
    draining: tuple[CidrHolders, ...]
    holders: tuple[SubnetHolder, ...]
    """Those that hold most come first."""


@click.command("show")
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME, shell_complete=complete_subnets)
@allocator_options
@watch_options
@objects_option
def show_subnet(
    *, network: str, name: str, location: AllocatorLocation, watching: Watching | None, output: str
) -> None:
    """Show a subnet, who is owed addresses in it, which nodes hold most, and what holds up CIDRs that drain."""

    async def look() -> str:
        async with location.allocator() as allocator:
            answer = await read_subnet(allocator, network, name)
        return rendered(output, answer, lines_of(answer, output), [f"{network}/{name}"])

    print_answer(look, watching)


async def read_subnet(allocator: Allocator, network: str, name: str) -> SubnetAnswer:
    """Ask for everything once."""
    found = await allocator.get_subnet(network, name)
    holders: list[SubnetHolder] = []
    more, is_last = "", False
    while not is_last:
        page = await allocator.list_containers(network=network, subnet=name, more=more)
        holders += (
            SubnetHolder(
                cluster=each.cluster,
                node=each.node,
                held=len(each.addresses),
                wanted=each.wanted,
                owed=each.owed,
                primary=each.primary,
                container=each.id,
            )
            for each in page.items
        )
        more, is_last = page.more, not page.more
    return SubnetAnswer(
        subnet=found,
        held=found.reserved - found.quarantined,
        quarantined=found.quarantined,
        owed=await allocator.owed(network, name),
        draining=tuple(await holders_of(allocator, found)),
        holders=tuple(sorted(holders, key=lambda each: (-each.held, each.cluster, each.node))),
    )


def lines_of(answer: SubnetAnswer, output: str) -> Iterator[str]:
    """The answer as text."""
    subnet, width = answer.subnet, table_width(output)
    yield sentence_of(subnet)
    share = f" ({100 * subnet.reserved // subnet.capacity} %)" if subnet.capacity else ""
    free = count_text(subnet.capacity - subnet.reserved)
    yield f"  reserved {subnet.reserved}{share}, free {free}, containers {subnet.containers}"
    yield f"  held {answer.held} by nodes, quarantined {answer.quarantined}, owed {subnet.owed}"
    if subnet.in_force.batch:
        batch = f"  batch {subnet.in_force.batch} of at most {subnet.in_force.top}, buffer {subnet.in_force.buffer}"
        state = "starved" if subnet.in_force.starved else "exhausted" if subnet.in_force.exhausted else ""
        yield alarming(f"{batch}, {state}") if state else batch
    kept = [f"the first {subnet.keep_back_first}"] if subnet.keep_back_first else []
    if kept := [*kept, *subnet.keep_back]:
        yield f"  kept back {', '.join(kept)}"
    for debt in answer.owed:
        yield f"  owes {debt.owed} to {debt.node} of {debt.cluster}, where {debt.waiting_pods} pods wait"
    yield from draining_lines(subnet, answer.draining)
    if answer.holders:
        yield ""
        shown = answer.holders if output == "wide" else answer.holders[:_MOST_NODES]
        yield from table(fitted(_rows(shown, output), width, dispensable=("CLUSTER",)))
        if more := len(answer.holders) - len(shown):
            yield f"and {counted(more, 'node holds', 'nodes hold')} no more than these; all of them with `-o wide`"


def _rows(holders: tuple[SubnetHolder, ...], output: str) -> list[tuple[str, ...]]:
    columns = ("NODE", "CLUSTER", "HELD", "WANTED", "OWED")
    rows: list[tuple[str, ...]] = [(*columns, "PRIMARY", "CONTAINER") if output == "wide" else columns]
    for each in holders:
        cells = (each.node, each.cluster, str(each.held), str(each.wanted), str(each.owed))
        rows.append((*cells, each.primary, each.container) if output == "wide" else cells)
    return rows
