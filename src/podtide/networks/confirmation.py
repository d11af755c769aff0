"""Whether a node's own IPPool of a slice counts, or is no more than the trace of a request.

A request that makes an object can arrive late, or twice, and then it makes an object that nobody wants any more: it
carries no version that the API server could refuse it by. So a pool that was made is inert. It counts once the slices
controller has written the pool's own uid on it, which it does after the slice was listed. No request to make a pool can
have that uid in it, because the API server chooses it when it makes the pool; and the write that confirms is of one
version of one object, so that it comes to nothing when that is gone.
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
