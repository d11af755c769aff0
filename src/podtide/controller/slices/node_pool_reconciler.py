"""The IPPools of slices that are assigned: created where missing, confirmed, and bound to the Node that has the slice."""

from collections.abc import Iterable

from podtide.controller.slices.node_pools import bound, marked_gone, new_pool, ownership
from podtide.controller.slices.survey import (
    RangeSurvey,
    SliceContext,
    SliceHolding,
    find_foreign_pool,
    side_by_side,
)
from podtide.core.networks.slice_custody import CustodyStep
from podtide.core.networks.slices import SliceAssignment
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool

PoolOfSlice = tuple[SliceAssignment, IPPool]

_CHANGING = {CustodyStep.ADOPT, CustodyStep.CONFIRM, CustodyStep.HAND_OVER, CustodyStep.MARK}
_CONFIRMING = {CustodyStep.ADOPT, CustodyStep.CONFIRM, CustodyStep.HAND_OVER}


class NodePoolReconciler:
    """Creates and writes nodes' own pools."""

    def __init__(self, context: SliceContext) -> None:
        self._context = context

    async def make_pools(
        self, name: str, of: NetworkRange, assignments: Iterable[SliceAssignment], survey: RangeSurvey
    ) -> list[PoolOfSlice]:
        """Create the pools of these slices, which have none. They are inert until they are confirmed."""
        made: list[PoolOfSlice] = []

        async def make(assignment: SliceAssignment) -> None:
            pool = await self._make(name, of, assignment, survey)
            if pool is not None:
                made.append((assignment, pool))

        await side_by_side(make, assignments)
        return made

    async def confirm(self, name: str, inert: Iterable[PoolOfSlice], survey: RangeSurvey) -> None:
        """Confirm these pools, so that agents use them.

        Each slice must have been listed since its pool was created, in one list only.
        """

        async def confirm_one(item: PoolOfSlice) -> None:
            assignment, pool = item
            await self._bind(name, assignment.node, pool, survey)

        await side_by_side(confirm_one, inert)

    async def without_pool(
        self, name: str, of: NetworkRange, kept: Iterable[SliceAssignment], survey: RangeSurvey
    ) -> list[SliceAssignment]:
        """The slices of existing nodes that have no pool, by fresh reads; Conflict if the cache lacked one."""
        missing = [each for each in kept if each.node in survey.nodes and survey.holdings[each].pool is None]
        nameable: set[SliceAssignment] = set()

        async def confirm(assignment: SliceAssignment) -> None:
            if await self._free_name(name, of, assignment, reads_all=True):
                nameable.add(assignment)

        await side_by_side(confirm, missing)
        return [each for each in missing if each in nameable]

    def will_confirm(self, survey: RangeSurvey, kept: Iterable[SliceAssignment]) -> bool:
        """Whether `take_steps` would confirm a pool of these slices: then the list has to be written first."""
        holdings = (survey.holdings[each] for each in kept)
        return any(
            each.step in _CONFIRMING and each.custody is not None and not each.custody.is_confirmed
            for each in holdings
        )

    async def take_steps(self, name: str, survey: RangeSurvey, kept: Iterable[SliceAssignment]) -> None:
        """Carry out the next step for the pools of kept slices, except inert ones, which `confirm` is for."""

        async def take_step(holding: SliceHolding) -> None:
            await self._take_step(name, holding, survey)

        holdings = (survey.holdings[each] for each in kept)
        await side_by_side(
            take_step, [each for each in holdings if each.step in _CHANGING and not each.is_inert]
        )

    def seconds_until_due(self, survey: RangeSurvey) -> float | None:
        """In how many seconds the next quarantine ends; None if there is none."""
        context = self._context
        ends = [
            each.custody.gone_since + context.quarantine_seconds
            for each in survey.holdings.values()
            if each.step is CustodyStep.REST and each.custody and each.custody.gone_since is not None
        ]
        if any(each.step is CustodyStep.MARK for each in survey.holdings.values()):
            ends.append(context.clock.wall() + context.quarantine_seconds)
        return max(0.0, min(ends) - context.clock.wall()) if ends else None

    async def _make(
        self, name: str, of: NetworkRange, assignment: SliceAssignment, survey: RangeSurvey
    ) -> IPPool | None:
        context, node = self._context, survey.nodes[assignment.node]
        free = await self._free_name(name, of, assignment, reads_all=False)
        if not free:
            return None
        place = ObjectMeta(name=free, namespace=context.namespace)
        marks = ownership(name, node)
        return await context.writes.create(new_pool(place, of.addresses.part(assignment.slice), marks))

    async def _bind(self, name: str, node: str, pool: IPPool, survey: RangeSurvey) -> None:
        marks = ownership(name, survey.nodes[node])
        await self._context.writes.replace(bound(pool, marks))

    async def _free_name(
        self, name: str, of: NetworkRange, assignment: SliceAssignment, *, reads_all: bool
    ) -> str:
        """The name for a new pool: the first that no other pool has; "" if all are taken.

        That a name is taken has to be shown by a fresh read: a pool that appeared in the cache since the survey may be
        the slice's own, or may be deleted already. With `reads_all`, names that the cache lacks are read as well.
        """
        context = self._context
        names = context.node_pools.names(of, assignment)
        free = []
        for each in names:
            is_read = reads_all or context.node_pools.get(each) is not None
            if not is_read or await find_foreign_pool(context, each, name, assignment) is None:
                free.append(each)
        if free:
            return free[0]
        why = (
            f"the IPPools {' and '.join(names)} belong to others"
            if names
            else "the pool's name would be too long"
        )
        context.log.warning(
            "no pool for a node",
            error=f"node {assignment.node} gets no pool for its slice {assignment.slice}: {why}; rename the network",
        )
        return ""

    async def _take_step(self, name: str, holding: SliceHolding, survey: RangeSurvey) -> None:
        pool, node = holding.pool, holding.assignment.node
        assert pool is not None
        if holding.step is not CustodyStep.MARK:
            await self._bind(name, node, pool, survey)
            return
        self._context.log.info("quarantine begins", node=node, pool=pool.metadata.name)
        await self._context.writes.replace(marked_gone(pool, name, node, self._context.clock.wall()))
