"""What a live cluster has: its nodes by the number of pods on them that need an address. It is only read."""

from collections import Counter

from podtide.cli.cluster_connection import ClusterConnection
from podtide.cli.observed_node import observe_nodes
from podtide.cli.plan.pod_counts import PodCounts
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.resources.node import Node
from podtide.resources.pod import Pod


async def pods_by_node(there: ClusterConnection) -> PodCounts:
    """The pods of every node of the cluster."""
    async with there.cluster() as cluster:
        return await count_pods(cluster)


async def count_pods(cluster: Cluster) -> PodCounts:
    """The pods that need an address on every Node there is; one without any counts with 0."""
    nodes = {node.metadata.name for node in await list_all(cluster, Node)}
    observed = {node.name: node.demand for node in observe_nodes((), await list_all(cluster, Pod))}
    if not nodes:
        raise InvalidInput(
            "the cluster has no nodes: give --nodes and --pods-per-node for those that it will have"
        )
    mix = Counter(observed.get(name, 0) for name in nodes)
    return PodCounts(mix, len(nodes))
