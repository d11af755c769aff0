"""`podtide subnet`: the subnets an allocator owns."""

from collections.abc import Iterator, Sequence

import click

from podtide.allocator.limits import MOST_WANTED
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import CidrHolders, Debt, Subnet, SubnetSpec
from podtide.cli.allocator_connection import AllocatorLocation, allocator_options
from podtide.cli.names import ALLOCATOR_NAME, NEW_SUBNET_NAME
from podtide.cli.number_options import INTERVAL, BoundedCount
from podtide.cli.output import output_option, show, table
from podtide.cli.screen_width import fitted, screen_width
from podtide.cli.subnet.growth import add_or_grow
from podtide.cli.subnet.history import history
from podtide.core.errors import InvalidInput
from podtide.core.subnet.count_text import capacity_text, count_text
from podtide.core.subnet.layout import exact_network

_COLUMNS = ("NETWORK", "NAME", "CIDRS", "CAPACITY", "RESERVED", "FREE", "CONTAINERS", "OWED")
_GATEWAY = "The gateway of the CIDR that the address is in; may be repeated. Default: each CIDR's first usable address."
_gateway_option = click.option("--gateway", multiple=True, metavar="ADDRESS", help=_GATEWAY)
_gateway_of_a_grown_option = click.option(
    "--gateway",
    multiple=True,
    metavar="ADDRESS",
    help=f"{_GATEWAY} If the subnet has that CIDR already, its gateway changes; running pods keep the former one.",
)
_MOST_NODES = 20


@click.group()
def subnet() -> None:
    """Add, list, show, grow, shrink and remove subnets, and see how they were used.

    Each command asks a running allocator (--allocator) or its database (--database).
    """


subnet.add_command(history)


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
    show(output, added, [_sentence(added)])


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
    show(output, grown, [_sentence(grown)])


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
    show(output, {"subnet": shrunk, "draining": held}, [_sentence(shrunk), *draining_lines(shrunk, held)])


@subnet.command("list")
@click.argument("network", type=ALLOCATOR_NAME, default="")
@allocator_options
@output_option
def list_subnets(*, network: str, location: AllocatorLocation, output: str) -> None:
    """List the subnets of a network, or of all."""
    subnets = location.ask(lambda allocator: allocator.list_subnets(network))
    rows = [_COLUMNS, *(_row(subnet) for subnet in subnets)]
    show(output, subnets, table(fitted(rows, screen_width(), dispensable=("CONTAINERS",))))


@subnet.command("show")
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@allocator_options
@output_option
def show_subnet(*, network: str, name: str, location: AllocatorLocation, output: str) -> None:
    """Show a subnet, who is owed addresses in it, and what holds up CIDRs that drain."""

    async def ask(allocator: Allocator) -> tuple[Subnet, tuple[Debt, ...], list[CidrHolders]]:
        found = await allocator.get_subnet(network, name)
        return found, await allocator.owed(network, name), await holders_of(allocator, found)

    found, debts, held = location.ask(ask)
    lines = [*_details(found, debts), *draining_lines(found, held)]
    show(output, {"subnet": found, "owed": debts, "draining": held}, lines)


@subnet.command()
@click.argument("network", type=ALLOCATOR_NAME)
@click.argument("name", type=ALLOCATOR_NAME)
@allocator_options
@output_option
def remove(*, network: str, name: str, location: AllocatorLocation, output: str) -> None:
    """Remove a subnet in which nothing is reserved."""
    location.ask(lambda allocator: allocator.remove_subnet(network, name))
    show(output, {"network": network, "removed": name}, [f"{network}/{name} is removed"])


def _sentence(subnet: Subnet) -> str:
    name = f"{subnet.network}/{subnet.name}"
    parts = [
        f"{f'gateway {gateway}' if gateway else 'no gateway'}{', draining' if cidr in subnet.draining else ''}"
        for cidr, gateway in zip(subnet.cidrs, subnet.gateways, strict=True)
    ]
    if len(parts) == 1:
        return f"{name} has {capacity_text(subnet.capacity, subnet.cidrs)}, {parts[0]}"
    each = (f"{cidr}, {part}" for cidr, part in zip(subnet.cidrs, parts, strict=True))
    return f"{name} has {count_text(subnet.capacity)} addresses in {'; '.join(each)}"


def _row(subnet: Subnet) -> tuple[str, ...]:
    numbers = (
        subnet.capacity,
        subnet.reserved,
        subnet.capacity - subnet.reserved,
        subnet.containers,
        subnet.owed,
    )
    return subnet.network, subnet.name, ",".join(subnet.cidrs), *map(count_text, numbers)


def _details(subnet: Subnet, debts: Sequence[Debt]) -> Iterator[str]:
    yield _sentence(subnet)
    share = f" ({100 * subnet.reserved // subnet.capacity} %)" if subnet.capacity else ""
    yield f"  reserved {subnet.reserved}{share}, free {count_text(subnet.capacity - subnet.reserved)}, containers {subnet.containers}"
    kept = [f"the first {subnet.keep_back_first}"] if subnet.keep_back_first else []
    if kept := [*kept, *subnet.keep_back]:
        yield f"  kept back {', '.join(kept)}"
    for debt in debts:
        yield f"  owes {debt.owed} to {debt.node} of {debt.cluster}, where {debt.waiting_pods} pods wait"


async def holders_of(allocator: Allocator, subnet: Subnet) -> list[CidrHolders]:
    """For each draining CIDR, which nodes hold addresses of it."""
    return [await allocator.holders(subnet.network, subnet.name, cidr) for cidr in subnet.draining]


def draining_lines(subnet: Subnet, held: Sequence[CidrHolders]) -> Iterator[str]:
    """For each draining CIDR, what nodes hold of it, and when they give it back, as text."""
    staying = subnet.capacity - subnet.draining_reserved
    if held and subnet.reserved > staying:
        yield (
            f"  the CIDRs that stay have {staying} addresses, and {subnet.reserved} are reserved: nodes will be short "
            "unless the subnet grows or pods go"
        )
    for cidr in held:
        nodes = cidr.holders
        reserved = sum(each.primary + each.addresses for each in nodes) + cidr.quarantined
        yield f"  {cidr.cidr} drains: {reserved} addresses are still reserved, and it leaves when none is"
        for node in nodes[:_MOST_NODES]:
            yield f"    {node.node} of {node.cluster} has {node.words}"
        if len(nodes) > _MOST_NODES:
            yield f"    and {len(nodes) - _MOST_NODES} more nodes; all of them with `-o json`"
        if cidr.quarantined:
            yield f"    removed nodes had {cidr.quarantined}, which are in quarantine until it ends"
        if nodes:
            yield (
                "    an address on a pod stays until the pod is deleted; a primary address until its node asks for another, "
                "as podtide's agents do, or is replaced"
            )
