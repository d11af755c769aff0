"""`podtide top`: how full the subnets are and how the nodes do, worst first."""

import asyncio
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import click
from msgspec.structs import replace

from podtide.allocator.subnets import Subnet
from podtide.cli.connections.allocator import AllocatorLocation
from podtide.cli.connections.asked_allocator import AskedPlaces, places_options
from podtide.cli.observed.network import NetworkObjects, observe_networks, read_network_objects
from podtide.cli.observed.node import observe_nodes
from podtide.cli.options.numbers import INTERVAL
from podtide.cli.output.formats import alarming, objects_option, rendered, table_width, warn
from podtide.cli.output.watching import Watching, print_answer
from podtide.cli.shell.known_names import complete_nodes, complete_subnets
from podtide.cli.top.overview import Overview, TopReading
from podtide.cli.top.sources import PolledAllocator, WatchedCluster
from podtide.cli.top.tables import all_tables
from podtide.cli.top.view import EVERYTHING, TopGrouping, TopOrder, TopView, view_of
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

_UNTIL_KNOWN_SECONDS = 0.1
"""How often to check whether there is anything to draw yet."""


@click.command()
@click.option(
    "-n",
    "--interval",
    type=INTERVAL,
    default=2.0,
    show_default="2s",
    help="How often to look again, on a terminal or with --watch.",
)
@click.option("--once", is_flag=True, help="Print once and exit, as without a terminal.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Look again and again without a terminal too, or with -o, and print what has changed.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    shell_complete=complete_nodes,
    metavar="NAME",
    help="Only nodes of this name, which may have wildcards, such as 'pool-a-*'; may be repeated.",
)
@click.option(
    "--subnet",
    "subnets",
    multiple=True,
    shell_complete=complete_subnets,
    metavar="NAME",
    help="Only this subnet and its nodes; wildcards as for --node; may be repeated.",
)
@click.option(
    "--sort",
    type=click.Choice([each.value for each in TopOrder]),
    default=TopOrder.WORST.value,
    show_default=True,
    help="What to sort by: the most comes first, but of what is free the least.",
)
@click.option(
    "--by",
    type=click.Choice([each.value for each in TopGrouping]),
    default=TopGrouping.NODE.value,
    show_default=True,
    help="Whether the last table is of nodes or of namespaces.",
)
@places_options
@objects_option
def top(  # noqa: PLR0913 - one argument per option
    *,
    interval: float,
    once: bool,
    watch: bool,
    nodes: tuple[str, ...],
    subnets: tuple[str, ...],
    sort: str,
    by: str,
    places: AskedPlaces,
    output: str,
) -> None:
    """Show how full the subnets are and how the nodes do, worst first.

    On a terminal it is redrawn until Ctrl-C. RESERVED is what the request controller last wrote, or, where --allocator
    or --database says how to reach it, what the allocator has now. HELD counts secondary addresses, FREE those of them
    that no pod has, PODS the pods with an address, WAITING those without, OWED what the node asks for and was not given.
    Where there are secondary networks, a table of them follows that of subnets.
    """
    view = TopView(nodes=nodes, subnets=subnets, order=TopOrder(sort), by=TopGrouping(by))
    if once and watch:
        raise click.UsageError("--once and --watch exclude each other: give one of them")
    if sys.stdout.isatty() and output == "table" and not once:
        asyncio.run(_keep_drawing(places, view, interval))
        return

    async def look() -> str:
        overview = await _look(places, view)
        lines = lines_of(overview, table_width(output), view.by, is_wide=output == "wide")
        return rendered(output, overview, lines, names_of(overview))

    print_answer(look, Watching(interval) if watch else None)


async def _look(places: AskedPlaces, view: TopView) -> Overview:
    async with places.opened() as (cluster, allocator):
        asked = PolledAllocator(allocator, _flag(places.location))
        await asked.ask()
        overview = await look_once(cluster, asked.subnets, namespace=places.networks_namespace, view=view)
        warn(filter(None, (asked.trouble(overview), *_in_vain(view, overview))))
        return overview


def _in_vain(view: TopView, overview: Overview) -> Iterator[str]:
    """What was asked for by name, and is not there."""
    if view.subnets and not overview.subnets:
        yield f"there is no subnet {' or '.join(view.subnets)}: check --subnet"
    elif view.nodes and not overview.nodes:
        yield f"there is no node {' or '.join(view.nodes)}: check --node"


def _flag(location: AllocatorLocation | None) -> str:
    return "--database" if location and location.database else "--allocator"


async def look_once(
    cluster: Cluster,
    at_allocator: Iterable[Subnet] = (),
    *,
    namespace: str = SYSTEM_NAMESPACE,
    view: TopView = EVERYTHING,
) -> Overview:
    """The overview, by one list of each kind."""
    pods = await list_all(cluster, Pod)
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    subnets = await list_all(cluster, ClusterSubnet, SYSTEM_NAMESPACE)
    states = await list_all(cluster, ClusterSubnetState, SYSTEM_NAMESPACE)
    objects = await read_network_objects(cluster, namespace) or NetworkObjects()
    networks = observe_networks(replace(objects, reservations=()), (), ())
    return view_of(view, TopReading(observe_nodes(configs, pods), subnets, states, at_allocator, networks))


def lines_of(
    overview: Overview, width: int | None, by: TopGrouping = TopGrouping.NODE, *, is_wide: bool = False
) -> Iterator[str]:
    """All tables as text; on a terminal they are made to fit, and bad rows are coloured."""
    for number, table in enumerate(all_tables(overview, by, is_wide=is_wide)):
        if number:
            yield ""
        head, *rows = table.lines(width)
        yield head
        yield from (
            alarming(line) if row.is_bad else line for line, row in zip(rows, table.rows, strict=True)
        )


def names_of(overview: Overview) -> Iterator[str]:
    """The subnets and nodes, as `kubectl get -o name` writes names."""
    yield from (f"subnet/{line.name}" for line in overview.subnets)
    yield from (f"network/{line.name}" for line in overview.networks)
    yield from (f"node/{line.name}" for line in overview.nodes)


async def _keep_drawing(places: AskedPlaces, view: TopView, interval_seconds: float) -> None:
    from rich.live import Live  # noqa: PLC0415 - needed only where it draws

    from podtide.cli.top.drawing import drawing_of  # noqa: PLC0415 - as above

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with places.opened() as (cluster, allocator):
        await look_once(cluster)  # so that an unreachable cluster is reported before the screen is cleared
        followed = WatchedCluster(cluster, namespace=places.networks_namespace, view=view)
        asked = PolledAllocator(allocator, _flag(places.location))
        beside = [asyncio.create_task(followed.run()), asyncio.create_task(asked.run(interval_seconds))]
        with Live(screen=True, auto_refresh=False) as live:
            while not stopped.is_set():
                overview = followed.overview(asked.subnets)
                complaint = followed.complaint() or asked.trouble(overview)
                live.update(drawing_of(overview, complaint, live.console.width, view.by), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(
                        stopped.wait(), interval_seconds if overview else _UNTIL_KNOWN_SECONDS
                    )
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
