"""`podtide subnet`: the subnets an allocator owns."""

from collections.abc import Iterator, Sequence

import click

from podtide.allocator.limits import MOST_WANTED
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import CidrHolders, Subnet, SubnetSpec
from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.options.names import ALLOCATOR_NAME, NEW_SUBNET_NAME
from podtide.cli.options.numbers import INTERVAL, BoundedCount
from podtide.cli.output.formats import objects_option, output_option, rendered, show, table, table_width
from podtide.cli.output.screen_width import fitted
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.subnet.details import draining_lines, holders_of, sentence_of
from podtide.cli.subnet.growth import add_or_grow
from podtide.cli.subnet.history import history
from podtide.cli.subnet.show import show_subnet
from podtide.core.errors import InvalidInput
from podtide.core.subnet.count_text import count_text
from podtide.core.subnet.layout import exact_network

_COLUMNS = ("NETWORK", "NAME", "CIDRS", "CAPACITY", "RESERVED", "FREE", "CONTAINERS", "OWED")
_WIDE_COLUMNS = ("QUARANTINED", "BATCH", "STATE", "DRAINING", "GATEWAYS")
_GATEWAY = "The gateway of the CIDR that the address is in; may be repeated. Default: each CIDR's first usable address."
_gateway_option = click.option("--gateway", multiple=True, metavar="ADDRESS", help=_GATEWAY)
_gateway_of_a_grown_option = click.option(
    "--gateway",
    multiple=True,
    metavar="ADDRESS",
    help=f"{_GATEWAY} If the subnet has that CIDR already, its gateway changes; running pods keep the former one.",
)


@click.group()
def subnet() -> None:
    """Add, list, show, grow, shrink and remove subnets, and see how they were used.

    Each command asks a running allocator (--allocator) or its database (--database).
    """


subnet.add_command(history)
subnet.add_command(show_subnet)


@subnet.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=NEW_SUBNET_NAME)
@click.argument("cidrs", nargs=-1, required=True)
@_gateway_option
@click.option(
    "--keep-back", multiple=True, metavar="ADDRESS", help="An address that is never granted; may be repeated."
)
@click.option(
    "--keep-back-first",
    type=BoundedCount(MOST_WANTED),
    default=0,
    show_default=True,
    metavar="COUNT",
    help="How many of the lowest addresses after the gateway are never granted.",
)
@click.option(
    "--grow",
    is_flag=True,
    help="If the subnet is there, add the CIDRs that it lacks; what it has beside them stays.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=INTERVAL,
    metavar="DURATION",
    help="How long to wait for an allocator that does not answer yet, such as 5m. Default: 3s.",
)
@allocator_options
@output_option
def add(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    cidrs: tuple[str, ...],
    gateway: tuple[str, ...],
    keep_back: tuple[str, ...],
    keep_back_first: int,
    grow: bool,
    wait_seconds: float | None,
    location: AllocatorLocation,
    output: str,
) -> None:
    """Add a subnet to a network.

    A network is created with its first subnet. Adding the same subnet again succeeds and changes nothing.
    """
    spec = SubnetSpec(
        network=network,
        name=name,
        cidrs=cidrs,
        gateways=gateway,
        keep_back=keep_back,
        keep_back_first=keep_back_first,
    )
    if wait_seconds is not None:
        location = location.waiting(wait_seconds)
    added = location.ask(
        lambda allocator: add_or_grow(allocator, spec) if grow else allocator.add_subnet(spec)
    )
    show(output, added, [sentence_of(added)])


@subnet.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@click.argument("cidrs", nargs=-1, required=True)
@_gateway_of_a_grown_option
@allocator_options
@output_option
def grow(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    cidrs: tuple[str, ...],
    gateway: tuple[str, ...],
    location: AllocatorLocation,
    output: str,
) -> None:
    """Add CIDRs to a subnet, each with a gateway of its own.

    A CIDR that the subnet has already stops draining, and its gateway becomes the one that is given for it.
    """
    grown = location.ask(lambda allocator: allocator.grow_subnet(network, name, cidrs, gateway))
    show(output, grown, [sentence_of(grown)])


@subnet.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@click.argument("cidrs", nargs=-1, required=True)
@click.option(
    "--now", is_flag=True, help="Remove the CIDRs at once; refused if any of their addresses is in use."
)
@click.option("--cancel", is_flag=True, help="Stop draining: grant addresses of these CIDRs again.")
@allocator_options
@output_option
def shrink(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    cidrs: tuple[str, ...],
    now: bool,
    cancel: bool,
    location: AllocatorLocation,
    output: str,
) -> None:
    """Let CIDRs of a subnet drain.

    Nothing more is granted of them, nodes give back what they do not use, and each leaves the subnet when it is empty.
    """
    if now and cancel:
        raise click.UsageError("--now and --cancel exclude each other: give one of them")

    asked = tuple(str(exact_network(cidr)) for cidr in cidrs)

    async def drain(allocator: Allocator) -> tuple[Subnet, list[CidrHolders]]:
        there = await allocator.get_subnet(network, name)
        if strangers := [cidr for cidr in asked if cidr not in there.cidrs]:
            raise InvalidInput(
                f"subnet {network}/{name} has no CIDR {', '.join(strangers)}: it has {', '.join(there.cidrs)}"
            )
        if cancel:
            draining = tuple(cidr for cidr in asked if cidr in there.draining)
            return await allocator.grow_subnet(network, name, draining) if draining else there, []
        shrunk = await allocator.shrink_subnet(network, name, asked, at_once=now)
        return shrunk, await holders_of(allocator, shrunk)

    shrunk, held = location.ask(drain)
    show(output, {"subnet": shrunk, "draining": held}, [sentence_of(shrunk), *draining_lines(shrunk, held)])


@subnet.command("list")
@click.argument("network", type=ALLOCATOR_NAME, default="")
@allocator_options
@watch_options
@objects_option
def list_subnets(
    *, network: str, location: AllocatorLocation, watching: Watching | None, output: str
) -> None:
    """List the subnets of a network, or of all."""

    async def look() -> str:
        async with location.allocator() as allocator:
            subnets = await allocator.list_subnets(network)
        names = (f"{subnet.network}/{subnet.name}" for subnet in subnets)
        return rendered(output, subnets, _lines_of(subnets, output), names)

    print_answer(look, watching)


def _lines_of(subnets: Sequence[Subnet], output: str) -> Iterator[str]:
    is_wide = output == "wide"
    rows: list[tuple[str, ...]] = [_COLUMNS + _WIDE_COLUMNS if is_wide else _COLUMNS]
    rows += [_row(subnet) + _wide_cells(subnet) if is_wide else _row(subnet) for subnet in subnets]
    return table(fitted(rows, table_width(output), dispensable=("CONTAINERS",)))


@subnet.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@allocator_options
@output_option
def remove(*, network: str, name: str, location: AllocatorLocation, output: str) -> None:
    """Remove a subnet in which nothing is reserved."""
    location.ask(lambda allocator: allocator.remove_subnet(network, name))
    show(output, {"network": network, "removed": name}, [f"{network}/{name} is removed"])


def _row(subnet: Subnet) -> tuple[str, ...]:
    numbers = (
        subnet.capacity,
        subnet.reserved,
        subnet.capacity - subnet.reserved,
        subnet.containers,
        subnet.owed,
    )
    return subnet.network, subnet.name, ",".join(subnet.cidrs), *map(count_text, numbers)


def _wide_cells(subnet: Subnet) -> tuple[str, ...]:
    in_force = subnet.in_force
    return (
        count_text(subnet.quarantined),
        count_text(in_force.batch) if in_force.batch else "-",
        "starved" if in_force.starved else "exhausted" if in_force.exhausted else "ok",
        ",".join(subnet.draining) or "-",
        ",".join(filter(None, subnet.gateways)) or "-",
    )
