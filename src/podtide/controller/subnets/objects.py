"""The two objects that tell agents of a subnet: ClusterSubnet, and ClusterSubnetState for agents that know only that.

The controller creates both, and creates them again if somebody deletes them. They are written when something changed,
never to bump a time.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from podtide.allocator.subnets import ClusterBounds, Subnet
from podtide.cluster.informer import Informer
from podtide.controller.placement.coverage import COVERAGE, NodeCoverage
from podtide.controller.placement.full_condition import FULL, Fullness, first_look, full_condition
from podtide.controller.subnets.overrides import ConfiguredBounds, in_force_condition, override_condition
from podtide.controller.subnets.runs_out import SubnetForecast, run_out_notice
from podtide.controller.subnets.status import (
    is_worth_writing,
    out_of_reach_condition,
    reach_conditions,
    subnet_status,
)
from podtide.controller.term_context import TermContext
from podtide.core.subnet.exhaustion import Thresholds
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.conditions import with_condition, without_condition
from podtide.resources.metadata_keys import NAME_LABEL, PODTIDE, SYSTEM_NAMESPACE
from podtide.resources.timestamps import to_time

_DAY_SECONDS = 86_400.0


class JudgedSubnet(Struct, frozen=True):
    """What a reconcile read of a subnet, and put in force."""

    subnet: Subnet
    configured: ConfiguredBounds
    others: Sequence[ClusterBounds]
    """What the other clusters on the subnet ask for."""
    thresholds: Thresholds
    is_full: bool


class SubnetObjects:
    """Reads them from the caches, and writes them."""

    def __init__(
        self,
        context: TermContext,
        subnets: Informer[ClusterSubnet],
        states: Informer[ClusterSubnetState],
        coverage: NodeCoverage,
    ) -> None:
        self._writes = context.writes
        self._clock = context.clock
        self._warning_days = context.settings.runs_out_warning_seconds / _DAY_SECONDS
        self._subnets = subnets
        self._states = states
        self._coverage = coverage
        self._default = context.options.subnet
        self._is_placed = context.options.placement
        self._fullness: dict[str, Fullness] = {}
        self._written_at: dict[str, float] = {}
        self._last_write: dict[str, tuple[ClusterSubnetStatus, ClusterSubnetStatus]] = {}
        """The status of each ClusterSubnet as it was last sent, and as the API server keeps it: an older CRD drops new fields."""
        self._reserved: dict[str, tuple[int, float]] = {}
        """What the last reconciles of each subnet found reserved, and since when."""

    def subnet(self, name: str) -> ClusterSubnet | None:
        """The ClusterSubnet in the cache."""
        return self._subnets.get(Key(SYSTEM_NAMESPACE, name))

    def state(self, name: str) -> ClusterSubnetState | None:
        """The ClusterSubnetState in the cache."""
        return self._states.get(Key(SYSTEM_NAMESPACE, name))

    def forget(self, name: str) -> None:
        """Forget a subnet that is no longer reconciled."""
        self._written_at.pop(name, None)
        self._last_write.pop(name, None)
        self._reserved.pop(name, None)
        self._fullness.pop(name, None)

    async def write_state(self, name: str, *, exhausted: bool) -> ClusterSubnetState:
        """Write whether the subnet is exhausted to the ClusterSubnetState, if that changed."""
        state = self.state(name)
        if state is None:
            state = await self._writes.create(ClusterSubnetState(metadata=_place(name)))
        if state.status is not None and state.status.exhausted == exhausted:
            return state
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp=to_time(self._clock.wall()))
        return await self._writes.replace_status(structs.replace(state, status=status))

    async def write_subnet(
        self, shown: ClusterSubnet | None, judged: JudgedSubnet, forecast: SubnetForecast | None
    ) -> ClusterSubnet:
        """Write what was read and what is in force to the ClusterSubnet, if that is worth a write.

        `shown` is the version that was decided from: its spec must not have changed since.
        """
        subnet, configured = judged.subnet, judged.configured
        name, now = subnet.name, self._clock.monotonic()
        if shown is None:
            shown = await self._writes.create(ClusterSubnet(metadata=_place(name)))
        generation, moment = shown.metadata.generation, to_time(self._clock.wall())
        before = shown.status
        if not (is_placed := self._is_placed and name == self._default):
            # What placement said of Nodes, or of them in another default subnet, is not updated any more.
            before = structs.replace(before, conditions=without_condition(before.conditions, COVERAGE))
        fullness = full_condition(self._note_fullness(shown, is_full=judged.is_full), generation, moment)
        notice = forecast and run_out_notice(shown.status, forecast, self._warning_days, generation, moment)
        conditions = (
            override_condition(shown.spec.scaler, configured, generation, moment),
            in_force_condition(configured.bounds, judged.others, subnet.in_force, generation, moment),
            *reach_conditions(shown.status, generation, moment),
            *([notice.condition] if notice else []),
            *([fullness] if fullness else []),
            *(self._coverage.conditions(generation, moment) if is_placed else []),
        )
        runs_out = notice.runs_out if notice else shown.status.runs_out
        status = subnet_status(before, subnet, judged.thresholds, conditions, runs_out)
        silent = now - self._written_at.setdefault(name, now)
        resting = now - self._note_reserved(name, subnet.reserved, now)
        is_dropped = self._last_write.get(name) == (status, shown.status)
        if is_dropped or not is_worth_writing(
            shown.status, status, silent_seconds=silent, resting_seconds=resting
        ):
            return shown
        written = await self._writes.replace_status(structs.replace(shown, status=status))
        self._written_at[name] = now
        self._last_write[name] = (status, written.status)
        return written

    def _note_fullness(self, shown: ClusterSubnet, *, is_full: bool) -> Fullness:
        name, now = shown.metadata.name, self._clock.monotonic()
        before = self._fullness.get(name)
        if before is None:
            told = next((each for each in shown.status.conditions if each.type == FULL), None)
            fullness = first_look(is_full=is_full, now=now, shown=told)
        else:
            fullness = before.seen(is_full=is_full, now=now)
        self._fullness[name] = fullness
        return fullness

    def _note_reserved(self, name: str, reserved: int, now: float) -> float:
        """Since when this many are reserved."""
        before = self._reserved.get(name)
        if before is None or before[0] != reserved:
            before = self._reserved[name] = (reserved, now)
        return before[1]

    async def write_out_of_reach(self, name: str, error: str) -> None:
        """Set the condition that the allocator does not answer, so that the numbers of the ClusterSubnet are stale."""
        shown = self.subnet(name)
        if shown is None or not shown.is_judged:
            return
        moment = to_time(self._clock.wall())
        condition = out_of_reach_condition(shown.status, error, shown.metadata.generation, moment)
        status = structs.replace(shown.status, conditions=with_condition(shown.status.conditions, condition))
        if status != shown.status:
            await self._writes.replace_status(structs.replace(shown, status=status))

    async def clear_subnet(self, shown: ClusterSubnet) -> None:
        """Clear the status of a ClusterSubnet that this controller does not keep up to date, so that agents ignore it."""
        if shown.is_judged:
            await self._writes.replace_status(structs.replace(shown, status=ClusterSubnetStatus()))


def _place(name: str) -> ObjectMeta:
    """Of a new object. The label says that podtide made it: an API server does not record who creates one without fields."""
    return ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, labels={NAME_LABEL: PODTIDE})
