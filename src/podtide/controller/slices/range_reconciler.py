"""The reconcile of one range that is cut into slices: which node has which slice, and the objects that say so.

The order of writes makes a crash between any two of them harmless (design R11, "Slices"):

    delete the pools of freed slices → create the pools of assigned ones, inert → write the NodeSlicePool → confirm the
    pools

A pool is confirmed only after a write of the NodeSlicePool that contains its entry and was made when the pool existed.
That an entry is already listed is not enough: the cache may be stale, and a write that frees the slice may still be in
flight, from a former term (the definition was deleted and created again). That write carries the previous
resourceVersion, so it now fails with a conflict. And a later reconcile that frees the slice finds the pool and deletes
it first; then the confirmation fails.

A request to create a pool may arrive long after its reconcile ended. The pool it creates stays inert
(`podtide.networks.confirmation`), and the next reconcile removes it.
"""

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from podtide.cluster.port import Conflict
from podtide.controller.counts import SliceCounts
from podtide.controller.slices.node_pool_reconciler import NodePoolReconciler, PoolOfSlice
from podtide.controller.slices.slice_pools import (
    LARGEST_TOTAL,
    ConditionFinding,
    accepted,
    conditions_after,
    confirmed,
    described,
    news,
    served,
    slicing_of,
    written,
)
from podtide.controller.slices.slice_removal import SliceRemoval
from podtide.controller.slices.survey import RangeSurvey, RangeSurveyor, SliceContext
from podtide.core.networks.slice_list import room_for
from podtide.core.networks.slices import SliceAssignment, SlicePlan, Slicing, assign_slices, in_address_order
from podtide.core.ranges import overlap
from podtide.networks.network import NetworkRange
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.metadata_keys import NETWORK_ANNOTATION
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.timestamps import to_time


class RangeOutcome(Struct, frozen=True, kw_only=True):
    """The result of one reconcile of a range."""

    again_in_seconds: float | None = None
    """When a quarantine ends."""
    is_waiting: bool = False
    """Whether a node waits for a slice."""
    is_draining: bool = False
    """Whether something waits for pools to become empty."""


class WantedRange(Struct, frozen=True, kw_only=True):
    """A range that is to be cut into slices."""

    key: str
    """The key of its network."""
    of: NetworkRange
    name: str
    """The name of its NodeSlicePool, which need not exist yet."""
    wish: Slicing | None
    """How it should be cut; None where its definitions disagree: then it stays as it is."""
    complaint: str
    """The message about definitions that disagree; "" if none does."""


class RangeReconciler:
    """Carries out what `core.networks.slices` plans."""

    def __init__(self, context: SliceContext) -> None:
        self._context = context
        self._surveyor = RangeSurveyor(context)
        self._removal = SliceRemoval(context)
        self._node_pools = NodePoolReconciler(context)

    async def assign(self, range_: WantedRange) -> RangeOutcome:
        """Assign a slice to every node, as far as there are any."""
        context, name, of = self._context, range_.name, range_.of
        listed = context.slice_pools.get(Key(context.namespace, name))
        in_force = slicing_of(listed) if listed else None
        wish = range_.wish or in_force
        if wish is None:
            return RangeOutcome()
        survey = await self._surveyor.survey(name, listed, of)
        await self._removal.discard(survey.strays)
        plan = self._plan(wish, range_, survey)
        finding = accepted(range_.complaint, "Disagreement")
        is_refused = bool(plan.refusal)
        if is_refused:
            finding = accepted(plan.refusal, "WouldMoveLiveSlices")
            if in_force is not None:  # nodes that come meanwhile are served as before
                wish, plan = in_force, self._plan(in_force, range_, survey)
        added = plan.added[: room_for(plan.kept, plan.added)]
        waiting = (*(each.node for each in plan.added[len(added) :]), *plan.waiting)
        assignments = SlicePlan(kept=plan.kept, added=added).assignments
        shortage = served(
            wish, len(assignments), waiting, len(survey.nodes), has_room=len(added) == len(plan.added)
        )
        freed = [survey.holdings[each] for each in plan.freed]
        await self._removal.collect(name, freed, plan.kept, of)
        left = await self._node_pools.without_pool(name, of, plan.kept, survey)
        made = await self._node_pools.make_pools(name, of, (*added, *left), survey)
        current = await self._write(range_, listed, wish, assignments, (shortage, finding))
        context.counts.slices[name] = SliceCounts(
            assigned=len(assignments), total=min(wish.count, LARGEST_TOTAL), waiting=len(waiting)
        )
        if current is listed and (made or self._node_pools.will_confirm(survey, plan.kept)):
            current = await context.writes.replace(confirmed(current, context.clock.wall()))
        await self._node_pools.take_steps(name, survey, plan.kept)
        await self._confirm(range_, current, [*made, *survey.inert(plan.kept)], survey)
        return RangeOutcome(
            again_in_seconds=self._node_pools.seconds_until_due(survey),
            is_waiting=bool(waiting),
            is_draining=is_refused,
        )

    async def _confirm(
        self, range_: WantedRange, written: NodeSlicePool, pools: Sequence[PoolOfSlice], survey: RangeSurvey
    ) -> None:
        """Confirm these pools, so that agents use them, except those that overlap an entry of another network."""
        if not pools:
            return
        await self._context.other_networks.wait_until_shown(written)
        elsewhere = self._context.other_networks.slices(range_.name, range_.of)
        contested = {key.slice for key, _ in pools if any(overlap(key.slice, other) for other in elsewhere)}
        alone = [each for each in pools if each[0].slice not in contested]
        await self._node_pools.confirm(range_.name, alone, survey)
        if contested:
            raise Conflict(
                f"slice {min(contested, key=str)} of NodeSlicePool {written.key} overlaps an entry of another network's NodeSlicePool: "
                "one of them gives way; reconcile again"
            )

    async def abandon(self, name: str) -> RangeOutcome:
        """Free the slices of a range that no definition wants any more, each as soon as no pod has an address of it."""
        context = self._context
        listed = context.slice_pools.get(Key(context.namespace, name))
        of = described(listed) if listed else None
        survey = await self._surveyor.survey(name, listed, of)
        await self._removal.discard(survey.strays)
        kept = [key for key, each in survey.holdings.items() if each.is_live]
        freed = [each for each in survey.holdings.values() if not each.is_live]
        await self._removal.collect(name, freed, kept, of)
        if listed is not None:
            await self._list_what_is_left(listed, kept)
        context.counts.slices.pop(name, None)
        await self._node_pools.take_steps(name, survey, kept)
        return RangeOutcome(
            again_in_seconds=self._node_pools.seconds_until_due(survey), is_draining=bool(kept)
        )

    async def _list_what_is_left(self, listed: NodeSlicePool, kept: Sequence[SliceAssignment]) -> None:
        slicing = slicing_of(listed)
        if not kept:
            await self._context.writes.delete(listed, unchanged=True)
            self._context.log.info("network removed", pool=listed.metadata.name)
        elif slicing is not None:
            conditions = listed.status.conditions if listed.status else []
            left = written(listed, listed.metadata, slicing, in_address_order(kept), conditions)
            if left != listed:
                await self._context.writes.replace(left)

    def _plan(self, slicing: Slicing, range_: WantedRange, survey: RangeSurvey) -> SlicePlan:
        context = self._context
        occupied = context.node_pools.occupied(
            range_.of.network_name, context.attachments.network_names(), range_.name
        )
        others = context.other_networks
        return assign_slices(
            slicing,
            survey.holdings,
            survey.nodes,
            occupied=chain(occupied, others.slices(range_.name, range_.of)),
            live=survey.live,
            unused=survey.unused,
            contested=others.yielded(range_.name, range_.of),
        )

    async def _write(
        self,
        range_: WantedRange,
        listed: NodeSlicePool | None,
        slicing: Slicing,
        assignments: Sequence[SliceAssignment],
        findings: tuple[ConditionFinding, ...],
    ) -> NodeSlicePool:
        """Write the NodeSlicePool if it differs. Returns the current version."""
        context = self._context
        place = ObjectMeta(
            name=range_.name, namespace=context.namespace, annotations={NETWORK_ANNOTATION: range_.key}
        )
        conditions = conditions_after(listed, findings, to_time(context.clock.wall()))
        wanted = written(listed, place, slicing, assignments, conditions)
        if listed is None:
            told = await context.writes.create(wanted)
        elif wanted != listed:
            told = await context.writes.replace(wanted)
        else:
            return listed
        for finding in news(listed, findings):
            await context.events.record(told, finding.reason, finding.message, warning=not finding.holds)
        return told
