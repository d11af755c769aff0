"""The pools of slices that are assigned: made where there is none, and kept to the Node that has them."""

from collections.abc import Iterable

from podtide.controller.slices.node_pool_objects import bound, marked_gone, new_pool, ownership
from podtide.controller.slices.surroundings import SliceSurroundings, side_by_side
from podtide.controller.slices.survey import Holding, Survey
from podtide.core.slice_custody import Step
from podtide.core.slices import SliceAssignment
from podtide.networks.network import NetworkRange
from podtide.resources.base import ObjectMeta
from podtide.resources.names import InvalidName

_CHANGING = {Step.ADOPT, Step.HAND_OVER, Step.MARK}


class Caring:
    """Writes nodes' own pools."""

    def __init__(self, around: SliceSurroundings) -> None:
        self._around = around

    async def make_pools(
        self, name: str, of: NetworkRange, assignments: Iterable[SliceAssignment], survey: Survey
    ) -> None:
        """Give every assigned slice of a node that is there a pool, if it has none."""
        missing = [
            each
            for each in assignments
            if each.node in survey.nodes
            and (each not in survey.holdings or survey.holdings[each].pool is None)
        ]

        async def make(assignment: SliceAssignment) -> None:
            await self._make(name, of, assignment, survey)

        await side_by_side(make, missing)

    async def care(self, name: str, survey: Survey, kept: Iterable[SliceAssignment]) -> None:
        """Do with the pools of kept slices what is to be done."""

        async def take_step(holding: Holding) -> None:
            await self._take_step(name, holding, survey)

        holdings = (survey.holdings[each] for each in kept)
        await side_by_side(take_step, [each for each in holdings if each.step in _CHANGING])

    def seconds_until_due(self, survey: Survey) -> float | None:
        """When the next quarantine is over."""
        around = self._around
        ends = [
            each.custody.gone_since + around.quarantine_seconds
            for each in survey.holdings.values()
            if each.step is Step.REST and each.custody and each.custody.gone_since is not None
        ]
        if any(each.step is Step.MARK for each in survey.holdings.values()):
            ends.append(around.clock.wall() + around.quarantine_seconds)
        return max(0.0, min(ends) - around.clock.wall()) if ends else None

    async def _make(self, name: str, of: NetworkRange, assignment: SliceAssignment, survey: Survey) -> None:
        around, node = self._around, survey.nodes[assignment.node]
        try:
            place = ObjectMeta(name=around.node_pools.free_name(of, assignment), namespace=around.namespace)
        except InvalidName as error:
            around.log.warning("no pool for a node", error=str(error))
            return
        marks = ownership(name, assignment.node, node.metadata.uid)
        await around.writes.create(new_pool(place, assignment.slice, marks))

    async def _take_step(self, name: str, holding: Holding, survey: Survey) -> None:
        pool, node = holding.pool, holding.assignment.node
        assert pool is not None
        if holding.step is Step.MARK:
            changed = marked_gone(pool, name, node, self._around.clock.wall())
            self._around.log.info("quarantine begins", node=node, pool=pool.metadata.name)
        else:
            changed = bound(pool, ownership(name, node, survey.nodes[node].metadata.uid))
        await self._around.writes.replace(changed)
