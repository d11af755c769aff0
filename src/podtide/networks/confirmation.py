"""Whether a node's own IPPool of a slice counts, or was only created by a late request.

A create request can arrive late, or twice, and then creates an object that is not wanted any more: it carries no
resourceVersion that the API server could reject it by. So a new pool is inert. It counts once the slices controller has
written the pool's own uid on it, which it does after the slice was listed. No create request can contain that uid,
because the API server chooses it on creation; and the write that confirms has uid and resourceVersion as preconditions,
so that it fails with a conflict when that object is gone.
"""

from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION, NODE_GONE_ANNOTATION, POOL_UID_ANNOTATION


def is_confirmed(pool: IPPool) -> bool:
    """Whether the pool carries its own uid as the mark of its confirmation."""
    return bool(pool.metadata.uid) and pool.metadata.annotations.get(POOL_UID_ANNOTATION) == pool.metadata.uid


def is_inert(pool: IPPool) -> bool:
    """Whether it is a node's own pool as created, and not confirmed: no address of it may be taken.

    A pool that Whereabouts created names no node. One with allocations, or in quarantine, has been written since it
    was created, by an earlier version that did not confirm.
    """
    marks = pool.metadata.annotations
    return (
        bool(marks.get(NODE_ANNOTATION))
        and not is_confirmed(pool)
        and not pool.spec.allocations
        and NODE_GONE_ANNOTATION not in marks
    )
