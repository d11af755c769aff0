"""`podtide top`: how full the subnets are and how the nodes do, worst first."""

import asyncio
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, suppress

import click

from podtide.allocator.subnets import Subnet
from podtide.cli.allocator_connection import AllocatorLocation, optional_allocator_options
from podtide.cli.cluster_connection import ClusterConnection, cluster_options
from podtide.cli.number_options import INTERVAL
from podtide.cli.observed_node import observe_nodes
from podtide.cli.output import output_option, show, warn
from podtide.cli.screen_width import screen_width
from podtide.cli.top.overview import Overview, overlook
from podtide.cli.top.sources import PolledAllocator, WatchedCluster
from podtide.cli.top.tables import cidr_tables, tables_of
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
    help="How often to redraw on a terminal.",
)
@click.option("--once", is_flag=True, help="Print once and exit, as without a terminal.")
@cluster_options
@optional_allocator_options
@output_option
def top(
    *,
    interval: float,
    once: bool,
    there: ClusterConnection,
    location: AllocatorLocation | None,
    output: str,
) -> None:
    """Show how full the subnets are and how the nodes do, worst first.

    On a terminal it is redrawn until Ctrl-C. RESERVED is what the request controller last wrote, or, where --allocator
    or --database says how to reach it, what the allocator has now. HELD counts secondary addresses, FREE those of them
    that no pod has, PODS the pods with an address, WAITING those without, OWED what the node asks for and was not given.
    """
    if once or output == "json" or not sys.stdout.isatty():
        overview = asyncio.run(_look(there, location))
        show(output, overview, lines_of(overview, screen_width()))
    else:
        asyncio.run(_keep_drawing(there, location, interval))


async def _look(there: ClusterConnection, location: AllocatorLocation | None) -> Overview:
    async with AsyncExitStack() as open_until_done:
        cluster = await open_until_done.enter_async_context(there.cluster())
        allocator = await open_until_done.enter_async_context(location.allocator()) if location else None
        asked = PolledAllocator(allocator, _flag(location))
        await asked.ask()
        overview = await look_once(cluster, asked.subnets)
        warn(filter(None, (asked.trouble(overview),)))
        return overview


def _flag(location: AllocatorLocation | None) -> str:
    return "--database" if location and location.database else "--allocator"


async def look_once(cluster: Cluster, at_allocator: Iterable[Subnet] = ()) -> Overview:
    """The overview, by one list of each kind."""
    pods = await list_all(cluster, Pod)
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    subnets = await list_all(cluster, ClusterSubnet, SYSTEM_NAMESPACE)
    states = await list_all(cluster, ClusterSubnetState, SYSTEM_NAMESPACE)
    return overlook(observe_nodes(configs, pods), subnets, states, at_allocator)


def lines_of(overview: Overview, width: int | None) -> Iterator[str]:
    """All tables as text; on a terminal they are made to fit."""
    subnets, nodes = tables_of(overview)
    yield from subnets.lines(width)
    for table in (*cidr_tables(overview), nodes):
        yield ""
        yield from table.lines(width)


async def _keep_drawing(
    there: ClusterConnection, location: AllocatorLocation | None, interval_seconds: float
) -> None:
    from rich.live import Live  # noqa: PLC0415 - needed only where it draws

    from podtide.cli.top.drawing import drawing_of  # noqa: PLC0415 - as above

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as open_until_done:
        cluster = await open_until_done.enter_async_context(there.cluster())
        allocator = await open_until_done.enter_async_context(location.allocator()) if location else None
        await look_once(cluster)  # so that an unreachable cluster is reported before the screen is cleared
        followed, asked = WatchedCluster(cluster), PolledAllocator(allocator, _flag(location))
        beside = [asyncio.create_task(followed.run()), asyncio.create_task(asked.run(interval_seconds))]
        with Live(screen=True, auto_refresh=False) as live:
            while not stopped.is_set():
                overview = followed.overview(asked.subnets)
                complaint = followed.complaint() or asked.trouble(overview)
                live.update(drawing_of(overview, complaint, live.console.width), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(
                        stopped.wait(), interval_seconds if overview else _UNTIL_KNOWN_SECONDS
                    )
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
