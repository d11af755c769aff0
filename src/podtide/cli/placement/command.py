"""`podtide placement`: take back what the controller published on Nodes, after placement was turned off."""

import click

from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.output.formats import ToldSteps, output_option
from podtide.cli.placement.removal import NodeTraces, refuse_if_published, remove_traces, traces
from podtide.cluster.port import Cluster


@click.group()
def placement() -> None:
    """Remove what placement wrote on Nodes: resources of podtide's, and the taint."""


@placement.command()
@click.option("--only-taints", is_flag=True, help="Remove the taint, and leave the resources.")
@click.option(
    "--force", is_flag=True, help="Go on although the controller may publish the resources again at once."
)
@cluster_options
@output_option
def remove(*, only_taints: bool, force: bool, there: ClusterConnection, output: str) -> None:
    """Remove podtide's resources and the taint podtide.io/no-addresses from all Nodes.

    `helm upgrade` with placement.enabled=false and `helm uninstall` do this by themselves, where hooks run. It can be
    repeated. Refused while placement is on: pods would wait for a resource that no node has.
    """
    tell = ToldSteps(output)

    async def remove_them(cluster: Cluster) -> list[NodeTraces]:
        if not (only_taints or force):
            await refuse_if_published(cluster)
        found = await traces(cluster, only_taints=only_taints)
        await remove_traces(cluster, found, tell=tell)
        return found

    tell.document(removed=there.ask(remove_them))
