"""Which parameters a subnet has in force, and whether it runs low.

A subnet's ClusterSubnet says both. Only where there is none is its ClusterSubnetState watched, which says no more than
whether the subnet is exhausted; making a ClusterSubnet ends that watch, deleting it resumes it. Each is watched by its
name, so another subnet's state is never looked at. A cluster need not even know the kinds: beside the controller of
Azure CNS, which knows no ClusterSubnet, the node's own parameters are in force.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import NoReturn, TypeVar

from podtide.agent.bell import Bell
from podtide.cluster.field_selector import field_is
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.core.exact import exact
from podtide.core.scaler import NodeScaler, Scaler, SubnetScaler, effective_scaler
from podtide.resources.base import Key, Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

R = TypeVar("R", bound=Resource)


class SubnetView:
    """One subnet as the cluster shows it. `changed` is called when it shows something else."""

    def __init__(  # noqa: PLR0913 - what to watch where, who is told, and what it runs in
        self,
        name: str,
        cluster: Cluster,
        *,
        changed: Callable[[], None],
        clock: Clock,
        randomness: Random,
        log: Logger,
    ) -> None:
        self._key = Key(SYSTEM_NAMESPACE, name)
        self._cluster = cluster
        self._changed = changed
        self._clock = clock
        self._randomness = randomness
        self._log = log.bind(subnet=name)
        self._bell = Bell(clock)
        self._subnets = self._informer(ClusterSubnet)
        self._states: Informer[ClusterSubnetState] | None = None
        """There is one only while there is no ClusterSubnet."""

    @property
    def is_known(self) -> bool:
        """Whether it is certain what the cluster says of the subnet, or that it says nothing."""
        if not self._subnets.synced.is_set():
            return False
        return self._subnet is not None or (self._states is not None and self._states.synced.is_set())

    @property
    def is_exhausted(self) -> bool:
        """Whether the subnet runs low, so that others wait for what this node can spare."""
        if (subnet := self._subnet) is not None:
            return subnet.status.exhausted or subnet.status.starved
        state = self._states.get(self._key) if self._states is not None else None
        return state is not None and state.status is not None and state.status.exhausted

    @property
    def is_starved(self) -> bool:
        """Whether a node waits while nothing is left."""
        return self._subnet is not None and self._subnet.status.starved

    def scaler(self, node: NodeScaler) -> Scaler:
        """What is in force for a node whose own parameters are these."""
        in_force = self._subnet.status.scaler if self._subnet is not None else None
        if in_force is None:
            return effective_scaler(node, None, exhausted=self.is_exhausted)
        return _scaler_in_force(node, in_force.batch, in_force.buffer)

    async def run(self) -> NoReturn:
        """Keep the view up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(self._subnets))
            while True:
                await self._until(self._has_subnet, is_so=False)
                self._states = self._informer(ClusterSubnetState)
                watching = group.create_task(self._follow(self._states))
                await self._until(self._has_subnet, is_so=True)
                self._states = None
                watching.cancel()

    @property
    def _subnet(self) -> ClusterSubnet | None:
        return self._subnets.get(self._key)

    def _has_subnet(self) -> bool | None:
        return self._subnet is not None if self._subnets.synced.is_set() else None

    async def _until(self, question: Callable[[], bool | None], *, is_so: bool) -> None:
        while question() is not is_so:
            await self._bell.wait()

    async def _follow(self, informer: Informer[R]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.synced.wait()  # handlers hear of what there is, not that there is nothing
            self._tell()

    def _informer(self, kind: type[R]) -> Informer[R]:
        scope = Scope(namespace=self._key.namespace, fields=field_is("metadata.name", self._key.name))
        informer = Informer(
            self._cluster,
            kind,
            scope,
            clock=self._clock,
            randomness=self._randomness,
            log=self._log,
            can_do_without=True,
        )
        informer.add_handler(lambda _old, _new: self._tell())
        return informer

    def _tell(self) -> None:
        self._bell.ring()
        self._changed()


@lru_cache(maxsize=64)
def _scaler_in_force(node: NodeScaler, batch: int, buffer: float) -> Scaler:
    """Asked for at every change of demand, and it seldom changes."""
    return effective_scaler(node, SubnetScaler(batch, exact(buffer, "buffer")))
