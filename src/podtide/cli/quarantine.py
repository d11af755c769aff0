"""`podtide quarantine`: addresses of deleted nodes, which are granted to no node until it is certain that no pod uses them."""

from collections.abc import Iterable

import click

from podtide.allocator.pages import every_container, every_quarantined
from podtide.allocator.port import AdministeredAllocator, Allocator
from podtide.allocator.quarantine import Quarantined
from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.output.formats import (
    counted,
    objects_option,
    output_option,
    rendered,
    show,
    table,
    table_width,
)
from podtide.cli.output.screen_width import fitted
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.programs.allocator.cluster import known_cluster
from podtide.cli.programs.running import log_option
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.core.errors import FixError, InvalidInput
from podtide.core.ranges import parse_address
from podtide.networks.pods import has_ended
from podtide.resources.pod import Pod
from podtide.resources.timestamps import to_time
from podtide.runtime.logging import Logger

_COLUMNS = ("CLUSTER", "NODE", "SUBNET", "CONTAINER", "UNTIL", "ADDRESSES")
_MOST_SHOWN = 2
"""The most addresses in a row on a terminal; a file and `-o json` have all."""
_WHAT_COULD_HAPPEN = (
    "a pod that still has one of them, on a machine that lives on, would share it with another pod"
)

reason_option = click.option(
    "--reason",
    required=True,
    help="Why no pod has the addresses any more. It is written to this command's log, and with --allocator to the allocator's.",
)


class StillInUse(FixError):
    """A living pod shows an address whose quarantine is to end."""


@click.group()
def quarantine() -> None:
    """List, and end, the quarantine of what removed nodes had.

    The controller ends quarantines by itself, once no living pod bound to the node's name shows the address. These
    commands are for what it cannot know. Each asks a running allocator (--allocator) or its database (--database).
    """


@quarantine.command("list")
@click.option("--cluster", default="", metavar="NAME", help="Only addresses of this cluster's nodes.")
@click.option("--node", default="", metavar="NAME", help="Only addresses of nodes of this name.")
@allocator_options
@watch_options
@objects_option
def list_quarantined(
    *, cluster: str, node: str, location: AllocatorLocation, watching: Watching | None, output: str
) -> None:
    """List what is in quarantine, and until when."""

    async def look() -> str:
        async with location.allocator() as allocator:
            left = await read_quarantined(allocator, cluster=cluster, node=node)
        width = table_width(output)
        rows = [_COLUMNS, *(_row(each, in_short=width is not None) for each in left)]
        lines = table(fitted(rows, width, dispensable=("CONTAINER",)))
        return rendered(output, left, lines, (address for each in left for address in each.addresses))

    print_answer(look, watching)


@quarantine.command("end")
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@reason_option
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    help="The cluster whose nodes had them, by its name at the allocator.",
)
@click.option("--force", is_flag=True, help=f"Do not read the pods first: {_WHAT_COULD_HAPPEN}.")
@cluster_options
@allocator_options
@output_option
@log_option
def end(  # noqa: PLR0913 - one argument per option
    *,
    addresses: tuple[str, ...],
    reason: str,
    cluster: str,
    force: bool,
    there: ClusterConnection,
    location: AllocatorLocation,
    output: str,
    log: Logger,
) -> None:
    """End the quarantine of these addresses, with a reason.

    Refused while a living pod of the cluster shows one of them.
    """
    wanted = frozenset(str(parse_address(address)) for address in addresses)
    if not force:
        there.ask(lambda cluster_: refuse_if_shown(cluster_, wanted))
    ended = location.ask(
        lambda allocator: end_quarantines(allocator, wanted, cluster=cluster, reason=reason, log=log)
    )
    words = f"{counted(ended, 'address is', 'addresses are')} free: {reason}"
    show(output, {"ended": ended, "reason": reason, "forced": force}, [words])


@quarantine.command("release-cluster")
@click.argument("name")
@reason_option
@click.option(
    "--force", is_flag=True, help="Confirm that the cluster is gone for ever and none of its machines runs."
)
@allocator_options
@output_option
@log_option
def release_cluster(  # noqa: PLR0913 - one argument per option
    *, name: str, reason: str, force: bool, location: AllocatorLocation, output: str, log: Logger
) -> None:
    """Free all that a cluster has which is gone for ever: its nodes' containers, what is in quarantine, and its name.

    This is `podtide allocator cluster forget` with a reason. It also works while the allocator's database recovers.
    """
    if not force:
        raise InvalidInput(
            f"all addresses of cluster {name} would be free at once, and where one of its machines still runs, "
            f"{_WHAT_COULD_HAPPEN}: switch them off, then say --force"
        )
    freed = location.ask_as_administration(lambda allocator: release_all(allocator, name, reason, log))
    show(
        output,
        {"cluster": name, "freed": freed, "reason": reason},
        [f"{counted(freed, 'address', 'addresses')} of cluster {name} are free: {reason}"],
    )


async def read_quarantined(allocator: Allocator, *, cluster: str = "", node: str = "") -> list[Quarantined]:
    """All that is in quarantine."""
    return [left async for left in every_quarantined(allocator, cluster=cluster, node=node)]


async def refuse_if_shown(cluster: Cluster, addresses: frozenset[str]) -> None:
    """Raises if a living pod shows one of the addresses, by a fresh list."""
    for pod in await list_all(cluster, Pod):
        shown = {pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips)} & addresses
        if shown and not has_ended(pod) and not pod.spec.host_network:
            raise StillInUse(
                f"pod {pod.key} on node {pod.spec.node_name} shows {min(shown)}, and it lives: delete the pod first, or "
                f"say --force, and {_WHAT_COULD_HAPPEN}"
            )


async def end_quarantines(
    allocator: Allocator, addresses: frozenset[str], *, cluster: str, reason: str, log: Logger
) -> int:
    """End the quarantine of these addresses, each of which must be in one. Returns their number."""
    left = await read_quarantined(allocator, cluster=cluster)
    found = [(each, tuple(ip for ip in each.addresses if ip in addresses)) for each in left]
    found = [(each, ips) for each, ips in found if ips]
    _refuse_what_is_unclear(addresses, found)
    ended = 0
    for each, ips in found:
        ended += await _end(allocator, each, ips, reason, log)
    return ended


async def release_all(allocator: AdministeredAllocator, cluster: str, reason: str, log: Logger) -> int:
    """Forget the cluster, if it is known. Returns the number of addresses that this frees."""
    await known_cluster(allocator, cluster)
    freed = sum(len(each.addresses) for each in await read_quarantined(allocator, cluster=cluster))
    async for container in every_container(allocator, cluster):
        freed += 1 + len(container.addresses)
    containers = await allocator.forget_cluster(cluster, reason=reason)
    log.info(
        "cluster released by hand", cluster=cluster, containers=containers, addresses=freed, reason=reason
    )
    return freed


async def _end(
    allocator: Allocator, left: Quarantined, ips: tuple[str, ...], reason: str, log: Logger
) -> int:
    ended = await allocator.end_quarantine(
        left.container, ips, cluster=left.cluster, cluster_uid=left.cluster_uid, reason=reason
    )
    log.info(
        "quarantine ended by hand",
        cluster=left.cluster,
        node=left.node,
        container=left.container,
        addresses=list(ips),
        ended=ended,
        reason=reason,
    )
    return ended


def _refuse_what_is_unclear(
    addresses: frozenset[str], found: Iterable[tuple[Quarantined, tuple[str, ...]]]
) -> None:
    holders: dict[str, Quarantined] = {}
    for each, ips in found:
        for ip in ips:
            if ip in holders:
                raise InvalidInput(
                    f"{ip} is in quarantine of {holders[ip].cluster} and of {each.cluster}, in different networks: say "
                    "which with --cluster"
                )
            holders[ip] = each
    if missing := sorted(addresses - holders.keys()):
        raise InvalidInput(
            f"{missing[0]} is not in quarantine: see `podtide quarantine list`; nothing was changed"
        )


def _row(left: Quarantined, *, in_short: bool) -> tuple[str, ...]:
    until = to_time(left.until) if left.seconds_left else "due"
    subnet = f"{left.network}/{left.subnet}"
    addresses = ",".join(left.addresses)
    if in_short and len(left.addresses) > _MOST_SHOWN:
        addresses = f"{left.addresses[0]} and {len(left.addresses) - 1} more"
    return left.cluster, left.node, subnet, left.container, until, addresses
