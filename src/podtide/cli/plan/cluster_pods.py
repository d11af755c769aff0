"""What a live cluster has: its nodes by the number of pods that need an address, and which workloads run. It is only read."""

from collections import Counter
from collections.abc import Iterable, Sequence

from podtide.cli.connections.cluster import ClusterConnection
from podtide.cli.observed.node import observe_nodes
from podtide.cli.plan.pod_counts import PodCounts
from podtide.cli.plan.workloads import CountedWorkload
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


async def running_of(there: ClusterConnection, workloads: Sequence[CountedWorkload]) -> dict[int, int]:
    """How many pods of each workload have an address already, by its place in the sequence."""
    async with there.cluster() as cluster:
        return count_running(await list_all(cluster, Pod), workloads, there.namespace() or "default")


def count_running(
    pods: Iterable[Pod], workloads: Sequence[CountedWorkload], namespace: str
) -> dict[int, int]:
    """The same, for pods that were read. A workload without a namespace is in the given one."""
    served = [pod for node in observe_nodes((), pods) for pod in (*node.served, *node.waiting)]
    return {
        index: sum(
            pod.metadata.namespace == (each.namespace or namespace)
            and each.labels.items() <= pod.metadata.labels.items()
            for pod in served
        )
        for index, each in enumerate(workloads)
        if each.labels
    }
