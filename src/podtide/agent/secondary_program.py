"""The agent of a node whose first network is another program's: it serves secondary networks, and keeps no pool.

To the API it looks like any agent. Who asks it for an address of the node's pool is told that there is none.
"""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import NoReturn

from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.pool_storage import LOCK
from podtide.agent.port import NodeState, NotAssigned, NotReady, PodAddress
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidConfig
from podtide.core.pool.pool import Address, Owner
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk
from podtide.runtime.logging import Logger
from podtide.runtime.settings import Settings

_NO_POOL = "this agent serves secondary networks alone: give the network a 'range', or run the agent with a node pool"


class SecondaryAgent:
    """The agent of one node, for secondary networks alone. Made, it has the disk's lock."""

    def __init__(  # noqa: PLR0913 - whose agent, on what, by which rules, and what it runs in
        self,
        cluster: Cluster,
        node_name: str,
        disk: Disk,
        *,
        settings: Settings,
        clock: Clock,
        randomness: Random,
        log: Logger,
        networks_namespace: str = SYSTEM_NAMESPACE,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the cluster has been heard of."""
        self._lock = disk.lock(LOCK)
        self.networks = SecondaryNetworks(
            cluster,
            node_name,
            namespace=networks_namespace,
            disk=disk,
            settings=settings,
            clock=clock,
            randomness=randomness,
            log=log.bind(node=node_name),
        )
        self.addresses = NoPool(node_name, self.synced)

    async def run(self) -> NoReturn:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._notice())
            await self.networks.run()

    async def _notice(self) -> None:
        while not self.synced.is_set():
            try:
                await self.networks.require_ready()
                self.synced.set()
            except NotReady:
                continue

    def close(self) -> None:
        """Let another agent have the disk."""
        self.networks.close()
        self._lock.release()


class NoPool:
    """`agent.port.Addresses` of a node that has none."""

    def __init__(self, node: str, synced: asyncio.Event) -> None:
        self._node = node
        self._synced = synced

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        """See `Addresses.add`."""
        del owner, arrived, wanted
        raise InvalidConfig(_NO_POOL)

    def add_now(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | None:
        """See `Addresses.add_now`."""
        del owner, arrived, wanted
        raise InvalidConfig(_NO_POOL)

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        """See `Addresses.delete`."""
        del owner
        return ()

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        """See `Addresses.check`."""
        raise NotAssigned(f"sandbox {owner.sandbox} has nothing of the node's pool: {_NO_POOL}")

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        """See `Addresses.collect_garbage`."""
        del network, alive
        return 0

    def require_ready(self) -> None:
        """See `Addresses.require_ready`. What there is to be ready for is the cluster."""
        if not self._synced.is_set():
            raise NotReady(f"the agent of {self._node} has not reached the cluster yet")

    def state(self) -> NodeState:
        """See `Addresses.state`."""
        return NodeState(
            node=self._node,
            synced=self._synced.is_set(),
            in_contact=self._synced.is_set(),
            counts={},
            primaries=0,
            requested=None,
            demand=None,
            waiting_pods=0,
            scaler=None,
            subnet="",
            subnet_cidr="",
            exhausted=False,
            starved=False,
            writes=0,
            restatements=0,
            collected_leaks=0,
            alarms=0,
            last_decision="",
        )

    def all_addresses(self) -> Iterable[Address]:
        """See `Addresses.all_addresses`."""
        return ()
