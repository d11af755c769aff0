"""The parameters in force in a subnet, and whether it is exhausted.

The status of the subnet's ClusterSubnet has both, once the controller has written its decision there (`status.scaler`).
Until then the object is ignored: it may have been created by hand, or the controller may have died before it wrote the
status. Only while there is no decision, the ClusterSubnetState is watched, which tells only whether the subnet is
exhausted:

    ClusterSubnet with `status.scaler`      its batch, buffer, exhausted and starved
    gone, or its scaler gone                the same for `KEPT_SECONDS`, and until the ClusterSubnetState is known
    none, or one that never had a scaler    the ClusterSubnetState's exhausted, and the node's own parameters

Each is watched by its name, so the state of another subnet is never read. The kinds may even be missing in the cluster:
with the controller of Azure CNS, which has no ClusterSubnet, the node's own parameters are in force.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn, TypeVar

from msgspec import Struct

from podtide.agent.request.address_space import AddressSpace
from podtide.cluster.field_selector import field_is
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.object_cache import Handler
from podtide.cluster.port import Cluster
from podtide.core.exact import exact
from podtide.core.subnet.scaler import NodeScaler, Scaler, SubnetScaler, effective_scaler
from podtide.resources.base import Key, Resource
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup

R = TypeVar("R", bound=Resource)

KEPT_SECONDS = 30.0
"""How long the last decision is kept after its ClusterSubnet was deleted, or lost its scaler. The controller creates one
that was deleted by mistake within seconds, and no node of the subnet has changed its request meanwhile."""


class ParametersInForce(Struct, frozen=True):
    """The parameters in force on a node."""

    scaler: Scaler
    top: int = 0
    """The largest batch that the node can have in this subnet; 0 when it is unknown."""


class SubnetView:
    """Watches one subnet. `changed` is called when its state changed."""

    def __init__(self, name: str, cluster: Cluster, *, changed: Callable[[], None], runtime: Runtime) -> None:
        self._key = Key(SYSTEM_NAMESPACE, name)
        self._cluster = cluster
        self._changed = changed
        self._runtime = runtime = runtime.bind(subnet=name)
        self._clock = runtime.clock
        self._wakeup = Wakeup(runtime.clock)
        self._kept: ClusterSubnetStatus | None = None
        """The last decision, after its object was deleted."""
        self._kept_until = 0.0
        self._subnets = self._informer(ClusterSubnet, self._subnet_changed)
        self._states: Informer[ClusterSubnetState] | None = None
        """Watched only while there is no decision, or the kept one has expired."""

    @property
    def is_known(self) -> bool:
        """Whether the subnet's state has been read, or is known to be missing."""
        if not self._subnets.synced.is_set():
            return False
        return self._decision is not None or self._has_state

    @property
    def has_batch(self) -> bool:
        """Whether a batch of the controller is in force."""
        return self._decision is not None

    @property
    def is_exhausted(self) -> bool:
        """Whether the subnet is exhausted."""
        if (decision := self._decision) is not None:
            return decision.exhausted or decision.starved
        state = self._states.get(self._key) if self._states is not None else None
        return state is not None and state.status is not None and state.status.exhausted

    @property
    def is_starved(self) -> bool:
        """Whether a node waits for addresses while the subnet has none left."""
        return self._decision is not None and self._decision.starved

    @property
    def spaces(self) -> tuple[AddressSpace, ...]:
        """The subnet's CIDRs with their gateways; none where the controller does not state them."""
        cidrs = self._decision.cidrs if self._decision is not None else ()
        return tuple(AddressSpace(each.cidr, each.gateway) for each in cidrs)

    @property
    def draining(self) -> tuple[str, ...]:
        """The CIDRs that are being removed from the subnet."""
        cidrs = self._decision.cidrs if self._decision is not None else ()
        return tuple(each.cidr for each in cidrs if each.draining)

    def in_force(self, node: NodeScaler) -> ParametersInForce:
        """The parameters in force for a node with these parameters of its own."""
        scaler = self._decision.scaler if self._decision is not None else None
        if scaler is None:
            return ParametersInForce(effective_scaler(node, None, exhausted=self.is_exhausted))
        return _in_force(node, scaler.batch, scaler.buffer, scaler.top)

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        watching: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(self._subnets))
            now = self._clock.monotonic()
            while True:
                is_needed = self._needs_state(now)
                if is_needed:
                    # What is over stays so, also by a clock that shows a hair less next time.
                    self._kept_until = 0.0
                if is_needed and watching is None:
                    self._states = self._informer(ClusterSubnetState)
                    watching = group.create_task(self._follow(self._states))
                elif watching is not None and not is_needed:
                    self._states = None
                    watching.cancel()
                    watching = None
                if self._kept is not None and self._has_state:
                    self._kept = None
                    self._changed()
                is_waiting = self._kept is not None and not is_needed
                now = await self._wakeup.wait(self._kept_until if is_waiting else None)

    @property
    def _decision(self) -> ClusterSubnetStatus | None:
        """The controller's decision, or the one kept from a moment ago."""
        return self._stated or self._kept

    @property
    def _stated(self) -> ClusterSubnetStatus | None:
        return _decision_in(self._subnets.get(self._key))

    @property
    def _has_state(self) -> bool:
        return self._states is not None and self._states.synced.is_set()

    def _needs_state(self, now: float) -> bool:
        if not self._subnets.synced.is_set() or self._stated is not None:
            return False
        return self._kept is None or now >= self._kept_until

    def _subnet_changed(self, old: ClusterSubnet | None, new: ClusterSubnet | None) -> None:
        before = _decision_in(old)
        if _decision_in(new) is not None:
            self._kept = None
        elif before is not None:
            self._kept = before
            self._kept_until = self._clock.monotonic() + KEPT_SECONDS

    async def _follow(self, informer: Informer[R]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.synced.wait()  # handlers are not called for an empty list
            self._tell()

    def _informer(self, kind: type[R], *handlers: Handler[R]) -> Informer[R]:
        scope = Scope(namespace=self._key.namespace, fields=field_is("metadata.name", self._key.name))
        informer = Informer(self._cluster, kind, scope, runtime=self._runtime, can_do_without=True)
        for handler in (*handlers, lambda _old, _new: self._tell()):
            informer.add_handler(handler)
        return informer

    def _tell(self) -> None:
        self._wakeup.wake()
        self._changed()


def _decision_in(subnet: ClusterSubnet | None) -> ClusterSubnetStatus | None:
    """The controller's decision; None if the status has no scaler, whatever else it has."""
    return subnet.status if subnet is not None and subnet.is_judged else None


@lru_cache(maxsize=64)
def _in_force(node: NodeScaler, batch: int, buffer: float, top: int | None) -> ParametersInForce:
    """The parameters in force. Cached, because it is computed at every change of demand and seldom changes."""
    scaler = effective_scaler(node, SubnetScaler(batch, exact(buffer, "buffer")))
    return ParametersInForce(scaler, min(top or 0, scaler.max_ips))
