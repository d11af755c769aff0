"""Empty pools for whole ranges that no definition asks for, and of which this term never saw one that did.

Whoever sees the last definition of a classic network go collects its pool (`networks`). This is for those whose
definition went while no controller ran: nothing in such a pool says that it was a definition's, so it is known by what
is not there. That is no risk: an agent that needs the pool after all makes it anew, as Whereabouts does, and one that
writes at the same instant wins.
"""

from msgspec import Struct

from podtide.controller.slices.context import SliceContext
from podtide.controller.slices.node_pool_index import named_network
from podtide.controller.slices.slice_pool_object import range_of
from podtide.core.ranges import IPNetwork, overlap
from podtide.networks.ownership import pool_range
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import normalise_range
from podtide.resources.timestamps import to_wall_seconds


class UnclaimedPools(Struct, frozen=True):
    """Reconciles pools by name."""

    context: SliceContext

    def may_be(self, pool: IPPool) -> bool:
        """Whether the pool looks like one of those, as far as it shows itself."""
        return (
            not pool.spec.allocations
            and _is_for_a_whole_range(pool)
            and self.context.attachments.classic_network(pool.metadata.name) is None
        )

    async def reconcile(self, name: str) -> float | None:
        """Delete the pool if it is one. Answers when to look again, if at all: an emptied pool is heard of anyway."""
        context = self.context
        pool = context.node_pools.get(name)
        range_ = pool_range(pool) if pool is not None else None
        if pool is None or range_ is None or not self.may_be(pool):
            return None
        if self._may_be_wanted(range_):
            return context.quarantine_seconds
        if (left_seconds := self._seconds_until_old(pool)) > 0:
            return left_seconds
        await context.writes.delete(pool, unchanged=True)
        context.log.info("pool of no network collected", pool=name)
        return None

    def _may_be_wanted(self, range_: IPNetwork) -> bool:
        """Whether a network is there, or may be, that has to do with the range: then its own worker sees to it."""
        context = self.context
        lists = (range_of(each) for each in context.slice_pools.items())
        return (
            context.attachments.may_want((), range_)
            or context.attachments.have_to_do_with(range_)
            or any(each is not None and overlap(each, range_) for each in lists)
        )

    def _seconds_until_old(self, pool: IPPool) -> float:
        """A pool that was made a moment ago may be of a definition that has not been heard of yet."""
        made = to_wall_seconds(pool.metadata.creation_timestamp) if pool.metadata.creation_timestamp else 0.0
        left_seconds = made + self.context.quarantine_seconds - self.context.clock.wall()
        return min(
            left_seconds, self.context.quarantine_seconds
        )  # by a clock that was ahead it would be much longer


def _is_for_a_whole_range(pool: IPPool) -> bool:
    """Whether it is called like such a pool, and no node's own. Whereabouts' pools of slices can be called so, too."""
    range_ = pool_range(pool)
    if range_ is None or named_network(pool) or pool.metadata.annotations.get(NODE_ANNOTATION):
        return False
    whole = normalise_range(str(range_))
    return pool.metadata.name == whole or pool.metadata.name.endswith(f"-{whole}")
