"""Pools that the copies do not show, or show no more: whatever is concluded from that, a fresh read comes first.

A slice has one pool. To free the slice while its pool is there, or to make a second one under the other name that it
may have, is what a copy that is behind would lead to.
"""

from podtide.cluster.port import Conflict, NotFound
from podtide.controller.slices.context import SliceContext
from podtide.controller.slices.node_pool_index import named_network
from podtide.controller.slices.node_pool_object import belongs
from podtide.core.networks.slices import SliceAssignment
from podtide.networks.confirmation import is_inert
from podtide.resources.ip_pool import IPPool


async def find_anothers_pool(
    context: SliceContext, pool: str, node_slice_pool: str, assignment: SliceAssignment
) -> IPPool | None:
    """Who else has a name that the pool of this slice may have, if anybody.

    Conflict when it is the slice's own pool, or an inert one of the same network, which is to be removed first.
    """
    try:
        found = await context.cluster.get(IPPool, pool, context.namespace)
    except NotFound:
        return None
    if belongs(found, node_slice_pool, assignment):
        raise Conflict(f"IPPool {found.key} is there, and the copy did not show it: look again")
    if is_inert(found) and named_network(found) == node_slice_pool:
        raise Conflict(f"IPPool {found.key} is of a request that came late, and not removed yet: look again")
    return found
