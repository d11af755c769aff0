"""What must hold for secondary networks once the faults have stopped: all objects agree, and nothing is leaked.

Read anew from the cluster, not from the book, which could be wrong as well as the programs.
"""

from collections import Counter
from collections.abc import Iterable

from podtide.cluster.port import Cluster
from podtide.core.audit.networks import NetworkPicture, audit_settled_networks
from podtide.core.ranges import IPAddress
from podtide.networks.audit_picture import draw_networks
from podtide.networks.pods import has_ended, uids_of
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod
from podtide.simulation.checks.network_book import NetworkBook


async def unsettled_networks(cluster: Cluster, book: NetworkBook) -> list[str]:
    """What is not settled yet, in sentences."""
    pods = (await cluster.list(Pod)).items
    picture = draw_networks(
        (await cluster.list(NetworkAttachmentDefinition)).items,
        reservations=(await cluster.list(OverlappingRangeIPReservation)).items,
        pools=(await cluster.list(IPPool)).items,
        slice_pools=(await cluster.list(NodeSlicePool)).items,
        pods=pods,
    )
    complaints = [violation.words for violation in audit_settled_networks(picture)]
    held = {(address, holder.podref) for pool in picture.pools for address, holder in pool.holders.items()}
    had = book.had_by_the_living()
    kept = _kept_for_the_next_sandbox(picture, pods, served={pod for _, pod in had})
    complaints += [
        f"{address} is held for {pod}, which does not have it"
        for address, pod in sorted(held - had - kept, key=str)
    ]
    complaints += [f"{address} is had by {pod}, and not held" for address, pod in sorted(had - held, key=str)]
    nodes = {node.metadata.name for node in (await cluster.list(Node)).items}
    sliced = {pool.node for pool in picture.pools if pool.node} | {each.node for each in picture.slices}
    complaints += [f"node {node} is gone, and has slices" for node in sorted(sliced - nodes)]
    listed = {(each.node, each.slice) for each in picture.slices}
    complaints += [
        f"pool {pool.pool} of node {pool.node} is of {pool.range}, and no list has it so"
        for pool in picture.pools
        if pool.node and (pool.node, pool.range) not in listed
    ]
    cut = {each.network for each in picture.slices}
    served = {(each.network, each.node) for each in picture.slices}
    complaints += [
        f"node {node} has no slice of {network}"
        for network in sorted(cut)
        for node in sorted(nodes)
        if (network, node) not in served
    ]
    return complaints


def _kept_for_the_next_sandbox(
    picture: NetworkPicture, pods: Iterable[Pod], *, served: set[str]
) -> set[tuple[IPAddress, str]]:
    """Allocations of pods that exist and have no sandbox because the nodes' pools are used up.

    The DEL of their last sandbox was never called. No program can tell such an entry from that of a sandbox in the
    making, and it does no harm: the pod's next sandbox takes it over, and repair frees it when the pod is deleted.
    """
    waiting = {
        str(pod.key): uids_of(pod)
        for pod in pods
        if str(pod.key) not in served and not has_ended(pod) and not pod.metadata.deletion_timestamp
    }
    kept = set[tuple[IPAddress, str]]()
    for pool in picture.pools:
        times = Counter((holder.podref, holder.ifname) for holder in pool.holders.values())
        kept |= {
            (address, holder.podref)
            for address, holder in pool.holders.items()
            if holder.pod_uid in waiting.get(holder.podref, ()) and times[holder.podref, holder.ifname] == 1
        }
    return kept
