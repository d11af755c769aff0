"""The two objects that tell agents of a subnet: ClusterSubnet, and ClusterSubnetState for those who know only that.

The controller makes both, and makes them again if somebody deletes them. They are written when something changed,
never to bump a time.
"""

from collections.abc import Sequence

from msgspec import structs

from podtide.allocator.port import ClusterBounds, Subnet
from podtide.cluster.informer import Informer
from podtide.controller.overrides import Configured, in_force_condition, override_condition
from podtide.controller.subnet_status import is_worth_writing, subnet_status
from podtide.controller.surroundings import Surroundings
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.timestamps import to_time


class SubnetObjects:
    """Reads them from copies, and writes them."""

    def __init__(
        self,
        around: Surroundings,
        subnets: Informer[ClusterSubnet],
        states: Informer[ClusterSubnetState],
    ) -> None:
        self._writes = around.writes
        self._clock = around.clock
        self._subnets = subnets
        self._states = states
        self._written_at: dict[str, float] = {}

    def subnet(self, name: str) -> ClusterSubnet | None:
        """The ClusterSubnet as last heard of."""
        return self._subnets.get(Key(SYSTEM_NAMESPACE, name))

    def state(self, name: str) -> ClusterSubnetState | None:
        """The ClusterSubnetState as last heard of."""
        return self._states.get(Key(SYSTEM_NAMESPACE, name))

    def forget(self, name: str) -> None:
        """The subnet is no longer looked at."""
        self._written_at.pop(name, None)

    async def write_state(self, name: str, *, exhausted: bool) -> ClusterSubnetState:
        """Have the ClusterSubnetState say whether the subnet is exhausted."""
        state = self.state(name)
        if state is None:
            state = await self._writes.create(ClusterSubnetState(metadata=_place(name)))
        if state.status is not None and state.status.exhausted == exhausted:
            return state
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp=to_time(self._clock.wall()))
        return await self._writes.replace_status(structs.replace(state, status=status))

    async def write_subnet(
        self,
        shown: ClusterSubnet | None,
        subnet: Subnet,
        configured: Configured,
        others: Sequence[ClusterBounds],
    ) -> ClusterSubnet:
        """Have the ClusterSubnet say what was read and what is in force, as far as that is worth a write.

        `shown` is the one that was decided from: its spec must not have changed since.
        """
        name, now = subnet.name, self._clock.monotonic()
        if shown is None:
            shown = await self._writes.create(ClusterSubnet(metadata=_place(name)))
        generation, moment = shown.metadata.generation, to_time(self._clock.wall())
        conditions = (
            override_condition(shown.spec.scaler, configured, generation, moment),
            in_force_condition(configured.bounds, others, subnet.in_force, generation, moment),
        )
        status = subnet_status(shown.status, subnet, conditions)
        silent = now - self._written_at.setdefault(name, now)
        if not is_worth_writing(shown.status, status, silent_seconds=silent):
            return shown
        written = await self._writes.replace_status(structs.replace(shown, status=status))
        self._written_at[name] = now
        return written

    async def clear_subnet(self, shown: ClusterSubnet) -> None:
        """Have a ClusterSubnet that nobody keeps up to date say nothing, so that agents do not go by it."""
        if shown.is_judged:
            await self._writes.replace_status(structs.replace(shown, status=ClusterSubnetStatus()))


def _place(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
