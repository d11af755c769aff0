"""The reconcile of a subnet: how full it is, what is in force from now on, and which owed nodes are served next.

One reading is of one instant at the allocator (`demand`): capacity, reserved, what containers state, what is in force
and what every cluster asks for. The decision is written back by compare-and-set, so that of several clusters that share
the subnet one decides, and the others tell their nodes what was decided. Nothing is remembered here except what was
told last: a controller that starts, a new leader and another cluster all decide from the same row.
"""

from fractions import Fraction

from msgspec import Struct, structs

from podtide.allocator.errors import AllocatorUnavailable, InForceConflict, NoSuchSubnet
from podtide.allocator.subnets import Bounds, Subnet, SubnetDemandReport, SubnetInForce
from podtide.controller.allocator_outage import RETRY_SECONDS, with_deadline
from podtide.controller.counts import SubnetCounts
from podtide.controller.placement.program import PlacementController
from podtide.controller.subnets.batch_decision import (
    bounds_of_all,
    in_force_after,
    patience_of,
    reading_of,
    scaler_of,
    standing_of,
)
from podtide.controller.subnets.forecasts import SubnetForecasts
from podtide.controller.subnets.known_subnets import KnownSubnets, in_turn
from podtide.controller.subnets.objects import JudgedSubnet, SubnetObjects
from podtide.controller.subnets.overrides import (
    ConfiguredBounds,
    configure,
    default_bounds,
    from_port,
    to_port,
)
from podtide.controller.subnets.runs_out import RUNS_OUT_SOON, run_out_warning
from podtide.controller.term_context import TermContext
from podtide.core.subnet.batch import BatchMove, SubnetDecision
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.scaler import SubnetScaler
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerOverride

_ALARMING = frozenset({BatchMove.STARVED.value, BatchMove.EXHAUSTED.value})
_SCALER_WRITES_PER_SECOND = 100
"""How many NodeNetworkConfigs per second get a new batch, where that is the only way nodes learn of it."""


class _ToldState(Struct, frozen=True):
    """What nodes and people were told of a subnet."""

    batch: int
    buffer: float
    """As in a ClusterSubnet."""
    exhausted: bool
    starved: bool


class SubnetReconciler:
    """Reconciles subnets by name, one at a time for each."""

    def __init__(
        self,
        context: TermContext,
        objects: SubnetObjects,
        subnets: KnownSubnets,
        *,
        forecasts: SubnetForecasts,
        placement: PlacementController,
    ) -> None:
        self._context = context
        self._options = context.options
        self._settings = context.settings
        self._objects = objects
        self._subnets = subnets
        self._forecasts = forecasts
        self._placement = placement
        self._asked: dict[str, Bounds] = {}
        """The bounds that the allocator was told in this term, by subnet."""
        self._told: dict[str, _ToldState] = {}
        """What nodes were told last, by subnet."""
        self._missing: set[str] = set()

    async def reconcile(self, name: str) -> float | None:
        """Reconcile a subnet. Returns after how many seconds to do it again; None if no node uses it any more."""
        self._context.counts.looks += 1
        if not self._subnets.is_used(name):
            self._forget(name)
            return None
        try:
            demand = await with_deadline(
                self._context.allocator.demand(self._options.network, name), f"read subnet {name}"
            )
        except NoSuchSubnet as refusal:
            self._note_answer()
            self._note_missing(name, refusal)
            return self._settings.poll_seconds
        except AllocatorUnavailable as error:
            await self._note_unavailable(name, error)
            return min(RETRY_SECONDS, self._settings.poll_seconds)
        self._note_answer()
        self._note_found(name)
        await self._serve_owed_nodes(demand.subnet)
        await self._decide_and_tell(demand)
        return self._settings.poll_seconds

    def _forget(self, name: str) -> None:
        self._asked.pop(name, None)
        self._told.pop(name, None)
        self._missing.discard(name)
        self._context.counts.subnets.pop(name, None)
        self._objects.forget(name)
        self._subnets.forget(name)
        self._forecasts.forget(name)
        self._placement.forget_subnet(name)

    def _note_answer(self) -> None:
        if self._context.outage.note_answer():
            self._context.log.info("the allocator answers again")

    async def _note_unavailable(self, name: str, error: AllocatorUnavailable) -> None:
        """Count the failure; once the allocator counts as unavailable, set the condition of the ClusterSubnet."""
        if self._context.outage.note_failure(error):
            self._context.log.warning("the allocator does not answer; retrying", error=str(error))
        if self._context.outage.is_known and self._options.cluster_subnets:
            await self._objects.write_out_of_reach(name, str(error))

    def _note_missing(self, name: str, refusal: NoSuchSubnet) -> None:
        if name not in self._missing:
            self._missing.add(name)
            self._context.log.warning(
                "a subnet that nodes use does not exist at the allocator", subnet=name, error=str(refusal)
            )

    def _note_found(self, name: str) -> None:
        """Queue the nodes of a subnet that did not exist before: their wishes were refused, and no event queues them."""
        if name in self._missing:
            self._missing.discard(name)
            self._queue_users(name)

    async def _serve_owed_nodes(self, subnet: Subnet) -> None:
        free = subnet.capacity - subnet.reserved
        if subnet.owed and free > 0:
            debts = await self._context.allocator.owed(subnet.network, subnet.name)
            for node in in_turn(debts, free, self._options.cluster):
                self._subnets.give_turn(node)
                self._context.node_queue.add(node)

    async def _decide_and_tell(self, demand: SubnetDemandReport) -> None:
        shown = self._objects.subnet(demand.subnet.name)
        spec = shown.spec.scaler if shown and self._options.cluster_subnets else ScalerOverride()
        configured = await self._ask_for(spec, demand)
        bounds = bounds_of_all(configured.bounds, demand, self._options.cluster)
        decision = self._options.batch_rule(
            standing_of(demand.subnet.in_force), reading_of(demand), bounds, patience_of(self._settings)
        )
        subnet = await self._put_in_force(demand.subnet, decision, bounds)
        is_full = self._placement.note_subnet(demand, decision).is_full
        others = [each for each in demand.bounds if each.cluster != self._options.cluster]
        judged = JudgedSubnet(subnet, configured, others, bounds.thresholds, is_full=is_full)
        told_by = await self._tell(shown, judged)
        await self._record_events(told_by, subnet.in_force, decision)
        await self._warn(shown, told_by)
        self._forecasts.note(subnet)
        self._note(subnet, decision, is_full=is_full)

    async def _ask_for(self, override: ScalerOverride, demand: SubnetDemandReport) -> ConfiguredBounds:
        """Tell the allocator the bounds of this cluster, if they changed. A refused override leaves them as they were."""
        name, cluster = demand.subnet.name, self._options.cluster
        known = next((each.bounds for each in demand.bounds if each.cluster == cluster), None)
        before = known or self._asked.get(name)
        otherwise = from_port(before) if before else default_bounds(self._settings)
        configured = configure(override, self._settings, otherwise)
        asked = to_port(configured.bounds)
        if asked != self._asked.get(name) or (known is not None and known != asked):
            await self._context.allocator.set_bounds(
                demand.subnet.network, name, cluster=cluster, bounds=asked
            )
            self._asked[name] = asked
        return configured

    async def _put_in_force(self, subnet: Subnet, decision: SubnetDecision, bounds: BatchBounds) -> Subnet:
        """The subnet with what is in force now, by this decision or by that of another cluster that wrote first."""
        decided = in_force_after(subnet.in_force, decision, bounds)
        if decided == subnet.in_force:
            return subnet
        try:
            return await self._context.allocator.put_in_force(subnet.network, subnet.name, decided)
        except InForceConflict:
            return await self._context.allocator.get_subnet(subnet.network, subnet.name)

    async def _tell(self, shown: ClusterSubnet | None, judged: JudgedSubnet) -> Resource:
        """Write what is in force to the objects that agents watch. Returns the object that Events are about."""
        subnet = judged.subnet
        if subnet.name not in self._told and shown is not None and (was := shown.status.scaler) is not None:
            self._told[subnet.name] = _ToldState(
                was.batch, was.buffer, exhausted=shown.status.exhausted, starved=shown.status.starved
            )
        state = await self._objects.write_state(subnet.name, exhausted=subnet.in_force.exhausted)
        if self._options.cluster_subnets:
            forecast = self._forecasts.latest(subnet.name)
            return await self._objects.write_subnet(shown, judged, forecast)
        if shown is not None:
            await self._objects.clear_subnet(shown)
        return state

    async def _record_events(
        self, about: Resource, in_force: SubnetInForce, decision: SubnetDecision
    ) -> None:
        """Write Events about what changed since the last ones, whichever cluster decided it."""
        name = about.metadata.name
        now = _ToldState(
            in_force.batch,
            float(Fraction(in_force.buffer)),
            exhausted=in_force.exhausted,
            starved=in_force.starved,
        )
        before = self._told.get(name, now)
        self._told[name] = now
        if before.exhausted != now.exhausted:
            step = BatchMove.EXHAUSTED if in_force.exhausted else BatchMove.RECOVERED
            await self._record(about, step.value, decision.exhaustion.comparison)
        if structs.replace(before, exhausted=now.exhausted) != now and in_force.step:
            await self._record(about, in_force.step, in_force.reason)

    async def _warn(self, shown: ClusterSubnet | None, told: Resource) -> None:
        """Write an Event when the day on which the subnet runs out has come near."""
        if isinstance(told, ClusterSubnet):
            before = shown.status if shown is not None else ClusterSubnetStatus()
            if message := run_out_warning(before, told.status):
                await self._context.events.record(told, RUNS_OUT_SOON, message, warning=True)

    async def _record(self, about: Resource, reason: str, message: str) -> None:
        await self._context.events.record(about, reason, message, warning=reason in _ALARMING)

    def _queue_users(self, name: str) -> None:
        for node in self._subnets.users(name):
            self._context.node_queue.add(node)

    def _queue_users_for_scaler(self, name: str) -> None:
        """Queue the subnet's nodes one after the other, so that each gets the new scaler: there may be thousands."""
        for number, node in enumerate(self._subnets.users(name)):
            self._context.node_queue.add_after(node, number / _SCALER_WRITES_PER_SECOND)

    def _note(self, subnet: Subnet, decision: SubnetDecision, *, is_full: bool) -> None:
        name, in_force = subnet.name, subnet.in_force
        scaler = scaler_of(in_force) or SubnetScaler(self._settings.batch, self._settings.buffer)
        changed = self._subnets.in_force(name) != scaler
        has_unplaced_pods = is_full and self._placement.is_enabled
        self._subnets.note_reconcile(name, scaler, is_short=subnet.owed > 0 or has_unplaced_pods)
        if changed and not self._options.cluster_subnets:
            self._queue_users_for_scaler(name)
        self._context.counts.subnets[name] = SubnetCounts(
            capacity=subnet.capacity,
            reserved=subnet.reserved,
            containers=subnet.containers,
            owed=subnet.owed,
            exhausted=in_force.exhausted,
            starved=in_force.starved,
            batch=scaler.batch,
            buffer=scaler.buffer,
            top=in_force.top,
            unanswered=decision.unanswered,
        )
