"""The agent of a node whose primary network is another program's: it serves secondary networks, and keeps no pool.

To the API it looks like any agent. An ADD without a range is refused.
"""

import asyncio
from collections.abc import Iterable
from typing import NoReturn

from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.pool_storage import LOCK
from podtide.agent.port import NodeState, NotAssigned, NotReady, PendingAdd, PodAddress
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidConfig
from podtide.core.pool.pool import Address, Owner
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.disk import Disk
from podtide.runtime.runtime import Runtime

_NO_POOL = "this agent serves secondary networks alone: give the network a 'range', or run the agent with a node pool"


class SecondaryAgent:
    """The agent of one node, for secondary networks alone. It has the lock of its disk from construction to `close`."""

    def __init__(
        self,
        cluster: Cluster,
        node_name: str,
        disk: Disk,
        *,
        runtime: Runtime,
        networks_namespace: str = SYSTEM_NAMESPACE,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the cluster was reached."""
        self._lock = disk.lock(LOCK)
        self.networks = SecondaryNetworks(
            cluster, node_name, namespace=networks_namespace, disk=disk, runtime=runtime.bind(node=node_name)
        )
        self.addresses = NoPool(node_name, self.synced)

    @property
    def network_ready(self) -> asyncio.Event:
        """Set once pods can be started."""
        return self.synced

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
        """Release the lock of the disk."""
        self.networks.close()
        self._lock.release()


class NoPool:
    """The addresses of a node without a pool."""

    def __init__(self, node: str, synced: asyncio.Event) -> None:
        self._node = node
        self._synced = synced

    def start_add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | PendingAdd:
        """Refused: there is no pool to take an address from."""
        del owner, arrived, wanted
        raise InvalidConfig(_NO_POOL)

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        """Refused: there is no pool to take an address from."""
        del owner, arrived, wanted
        raise InvalidConfig(_NO_POOL)

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        """Nothing to free."""
        del owner
        return ()

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        """Always NotAssigned."""
        raise NotAssigned(f"sandbox {owner.sandbox} has nothing of the node's pool: {_NO_POOL}")

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        """Nothing to free."""
        del network, alive
        return 0

    def require_ready(self) -> None:
        """NotReady until the cluster was reached."""
        if not self._synced.is_set():
            raise NotReady(f"the agent of {self._node} has not reached the cluster yet")

    def state(self) -> NodeState:
        """The current state of the node: without addresses, requests and subnet."""
        return NodeState(synced=self._synced.is_set(), in_contact=self._synced.is_set())

    def all_addresses(self) -> Iterable[Address]:
        """No addresses."""
        return ()
