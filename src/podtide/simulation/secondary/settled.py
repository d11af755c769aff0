"""What must be so of secondary networks once the faults have stopped: everything fits, and nothing is held for nobody.

Read anew from the cluster, not from the book, which could be wrong as well as the programs.
"""

from podtide.cluster.port import Cluster
from podtide.core.network_audit import audit_settled_networks
from podtide.networks.picture import draw_networks
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod
from podtide.simulation.secondary.network_book import NetworkBook


async def unsettled_networks(cluster: Cluster, book: NetworkBook) -> list[str]:
    """What is not as it must be in the end."""
    picture = draw_networks(
        (await cluster.list(NetworkAttachmentDefinition)).items,
        reservations=(await cluster.list(OverlappingRangeIPReservation)).items,
        pools=(await cluster.list(IPPool)).items,
        slice_pools=(await cluster.list(NodeSlicePool)).items,
        pods=(await cluster.list(Pod)).items,
    )
    complaints = [violation.words for violation in audit_settled_networks(picture)]
    held = {(address, holder.podref) for pool in picture.pools for address, holder in pool.holders.items()}
    had = book.had_by_the_living()
    complaints += [
        f"{address} is held for {pod}, which does not have it" for address, pod in sorted(held - had, key=str)
    ]
    complaints += [f"{address} is had by {pod}, and not held" for address, pod in sorted(had - held, key=str)]
    nodes = {node.metadata.name for node in (await cluster.list(Node)).items}
    kept = {pool.node for pool in picture.pools if pool.node} | {each.node for each in picture.slices}
    complaints += [f"node {node} is gone, and has slices" for node in sorted(kept - nodes)]
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
