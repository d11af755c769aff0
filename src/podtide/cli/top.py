"""`podtide top`: how full the subnets are and how the nodes do, worst first."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

import click

from podtide.cli.duration import DURATION
from podtide.cli.observed_node import observe_nodes
from podtide.cli.output import output_option, show
from podtide.cli.reaching_cluster import ClusterReach, cluster_options
from podtide.cli.reading_cluster import list_all
from podtide.cli.top_cidrs import cidr_tables
from podtide.cli.top_following import FollowedCluster
from podtide.cli.top_overview import Overview, overlook
from podtide.cli.top_tables import tables_of
from podtide.cluster.port import Cluster
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

_UNTIL_KNOWN_SECONDS = 0.1
"""How often to look whether there is anything to draw."""


@click.command()
@click.option(
    "-n",
    "--interval",
    type=DURATION,
    default=2.0,
    show_default="2s",
    help="How often to draw anew, on a terminal.",
)
@click.option("--once", is_flag=True, help="Print once and end, as is done where there is no terminal.")
@cluster_options
@output_option
def top(*, interval: float, once: bool, there: ClusterReach, output: str) -> None:
    """Show how full the subnets are and how the nodes do, worst first.

    On a terminal it is drawn anew until Ctrl-C. HELD counts secondary addresses, FREE those of them that no pod has,
    PODS the pods with an address, WAITING those without, OWED what the node asks for and was not given.
    """
    if once or output == "json" or not sys.stdout.isatty():
        overview = there.ask(look_once)
        show(output, overview, _lines(overview))
    else:
        asyncio.run(_keep_drawing(there, interval))


async def look_once(cluster: Cluster) -> Overview:
    """The overview, by one list of each kind."""
    pods = await list_all(cluster, Pod)
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    subnets = await list_all(cluster, ClusterSubnet, SYSTEM_NAMESPACE)
    states = await list_all(cluster, ClusterSubnetState, SYSTEM_NAMESPACE)
    return overlook(observe_nodes(configs, pods), subnets, states)


def _lines(overview: Overview) -> Iterator[str]:
    subnets, nodes = tables_of(overview)
    yield from subnets.lines()
    for table in (*cidr_tables(overview), nodes):
        yield ""
        yield from table.lines()


async def _keep_drawing(there: ClusterReach, interval_seconds: float) -> None:
    from rich.live import Live  # noqa: PLC0415 - needed only where it draws

    from podtide.cli.top_drawing import drawing_of  # noqa: PLC0415 - as above

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with there.cluster() as cluster:
        await look_once(cluster)  # that a cluster cannot be reached is said before the screen is taken
        followed = FollowedCluster(cluster)
        following = asyncio.create_task(followed.run())
        with Live(screen=True, auto_refresh=False) as live:
            while not stopped.is_set():
                overview = followed.overview()
                live.update(drawing_of(overview, followed.complaint()), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(
                        stopped.wait(), interval_seconds if overview else _UNTIL_KNOWN_SECONDS
                    )
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
