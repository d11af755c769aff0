"""`podtide subnet`: the subnets an allocator owns."""

from collections.abc import Iterator, Sequence

import click

from podtide.allocator.port import Allocator, Debt, Subnet, SubnetSpec
from podtide.cli.output import output_option, show, table
from podtide.cli.reaching import Reach, reach_options
from podtide.cli.screen_width import fitted, screen_width

_COLUMNS = ("NETWORK", "NAME", "CIDRS", "CAPACITY", "RESERVED", "FREE", "CONTAINERS", "OWED")


@click.group()
def subnet() -> None:
    """Add, list, show, grow and remove subnets.

    Each command asks a running allocator (--server) or the database itself (--database).
    """


@subnet.command()
@click.argument("network")
@click.argument("name")
@click.argument("cidrs", nargs=-1, required=True)
@click.option("--gateway", help="The gateway's address. Default: the first usable one of the first CIDR.")
@click.option(
    "--keep-back", multiple=True, metavar="ADDRESS", help="An address never to be given; may be repeated."
)
@click.option(
    "--keep-back-first",
    type=int,
    default=0,
    show_default=True,
    metavar="COUNT",
    help="How many of the lowest addresses after the gateway are never to be given.",
)
@reach_options
@output_option
def add(  # noqa: PLR0913 - one argument per option
    *,
    network: str,
    name: str,
    cidrs: tuple[str, ...],
    gateway: str | None,
    keep_back: tuple[str, ...],
    keep_back_first: int,
    reach: Reach,
    output: str,
) -> None:
    """Add a subnet to a network.

    NETWORK appears with its first subnet. The same subnet again is there already, and that is fine.
    """
    spec = SubnetSpec(
        network=network,
        name=name,
        cidrs=cidrs,
        gateway=gateway,
        keep_back=keep_back,
        keep_back_first=keep_back_first,
    )
    added = reach.ask(lambda allocator: allocator.add_subnet(spec))
    show(output, added, [_sentence(added)])


@subnet.command()
@click.argument("network")
@click.argument("name")
@click.argument("cidrs", nargs=-1, required=True)
@reach_options
@output_option
def grow(*, network: str, name: str, cidrs: tuple[str, ...], reach: Reach, output: str) -> None:
    """Add CIDRs to a subnet."""
    grown = reach.ask(lambda allocator: allocator.grow_subnet(network, name, cidrs))
    show(output, grown, [_sentence(grown)])


@subnet.command("list")
@click.argument("network", default="")
@reach_options
@output_option
def list_subnets(*, network: str, reach: Reach, output: str) -> None:
    """List the subnets of a network, or of all."""
    subnets = reach.ask(lambda allocator: allocator.list_subnets(network))
    rows = [_COLUMNS, *(_row(subnet) for subnet in subnets)]
    show(output, subnets, table(fitted(rows, screen_width(), dispensable=("CONTAINERS",))))


@subnet.command("show")
@click.argument("network")
@click.argument("name")
@reach_options
@output_option
def show_subnet(*, network: str, name: str, reach: Reach, output: str) -> None:
    """Show a subnet, and who is owed addresses in it."""

    async def both(allocator: Allocator) -> tuple[Subnet, tuple[Debt, ...]]:
        return await allocator.get_subnet(network, name), await allocator.owed(network, name)

    found, debts = reach.ask(both)
    show(output, {"subnet": found, "owed": debts}, _details(found, debts))


@subnet.command()
@click.argument("network")
@click.argument("name")
@reach_options
@output_option
def remove(*, network: str, name: str, reach: Reach, output: str) -> None:
    """Remove a subnet in which nothing is reserved."""
    reach.ask(lambda allocator: allocator.remove_subnet(network, name))
    show(output, {"network": network, "removed": name}, [f"{network}/{name} is removed"])


def _sentence(subnet: Subnet) -> str:
    cidrs = ", ".join(subnet.cidrs)
    return (
        f"{subnet.network}/{subnet.name} has {subnet.capacity} addresses in {cidrs}, gateway {subnet.gateway}"
    )


def _row(subnet: Subnet) -> tuple[str, ...]:
    numbers = (
        subnet.capacity,
        subnet.reserved,
        subnet.capacity - subnet.reserved,
        subnet.containers,
        subnet.owed,
    )
    return subnet.network, subnet.name, ",".join(subnet.cidrs), *map(str, numbers)


def _details(subnet: Subnet, debts: Sequence[Debt]) -> Iterator[str]:
    yield _sentence(subnet)
    share = f" ({100 * subnet.reserved // subnet.capacity} %)" if subnet.capacity else ""
    yield f"  reserved {subnet.reserved}{share}, free {subnet.capacity - subnet.reserved}, containers {subnet.containers}"
    kept = [f"the first {subnet.keep_back_first}"] if subnet.keep_back_first else []
    if kept := [*kept, *subnet.keep_back]:
        yield f"  kept back {', '.join(kept)}"
    for debt in debts:
        yield f"  owes {debt.owed} to {debt.node} of {debt.cluster}, where {debt.waiting_pods} pods wait"
