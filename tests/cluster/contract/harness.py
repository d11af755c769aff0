"""What the contract suite is given: a cluster, a namespace of its own, and what an adapter can do for a test.

The suite relies on the port alone. It may run on a server that others use too and that knows no virtual time: names
are unique (a namespace per test), waits are bounded, and nothing is said about when a background task is done.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

from msgspec import Struct

from patience import PATIENCE_SECONDS
from podtide.cluster.port import Change, Cluster, NotFound, WatchEvent
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.pod import Pod, PodContainer, PodSpec

R = TypeVar("R", bound=Resource)

MANAGER = "contract"


class ClusterUnderTest(Struct, frozen=True):
    """A cluster and what belongs to one test."""

    cluster: Cluster
    namespace: str
    other_namespace: str
    """The first one's name and `-b`."""
    expire_history: Callable[[], Awaitable[None]]
    """Make every resource version and token given out so far too old."""
    bookmark_patience_seconds: float = 90.0
    """How long a bookmark may take to come."""

    def config(self, name: str = "node-a", requested: int = 0, **metadata: object) -> NodeNetworkConfig:
        """A NodeNetworkConfig: a custom resource with a status subresource."""
        return NodeNetworkConfig(
            metadata=self.metadata(name, **metadata), spec=NodeNetworkConfigSpec(requested_ip_count=requested)
        )

    def pool(self, name: str = "pool-a", **allocations: str) -> IPPool:
        """An IPPool: a custom resource without a status subresource; `allocations` are podrefs by `_offset`."""
        taken = {
            offset.lstrip("_"): IPAllocation(id=f"sandbox-{podref}", podref=podref)
            for offset, podref in allocations.items()
        }
        return IPPool(metadata=self.metadata(name), spec=IPPoolSpec(range="10.0.0.0/24", allocations=taken))

    def pod(self, name: str, node: str = "") -> Pod:
        """A pod that an API server accepts."""
        containers = [PodContainer(name="main", image="registry.invalid/nothing")]
        return Pod(metadata=self.metadata(name), spec=PodSpec(node_name=node, containers=containers))

    def metadata(self, name: str, **more: object) -> ObjectMeta:
        """Metadata in the test's namespace."""
        return ObjectMeta(**{"name": name, "namespace": self.namespace, **more})  # type: ignore[arg-type]  # as ObjectMeta checks

    async def create(self, *items: R) -> list[R]:
        """Make objects."""
        return [await self.cluster.create(item, manager=MANAGER) for item in items]

    async def now(self, kind: type[Resource] = NodeNetworkConfig) -> str:
        """The present resource version of a kind."""
        return (await self.cluster.list(kind, self.namespace)).resource_version

    async def gone(self, item: Resource) -> None:
        """Wait until the object is not there."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    await self.cluster.get(type(item), item.metadata.name, item.metadata.namespace)
                except NotFound:
                    return
                await asyncio.sleep(0.05)


OpenCluster = Callable[[], AbstractAsyncContextManager[ClusterUnderTest]]


async def take(watch: AsyncGenerator[WatchEvent[R], None], count: int) -> list[WatchEvent[R]]:
    """The next events of a watch, bookmarks left out, and then no more of it."""
    events: list[WatchEvent[R]] = []
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(watch):
        async for event in watch:
            if event.change is not Change.BOOKMARK:
                events.append(event)
            if len(events) == count:
                break
    return events


def seen(events: list[WatchEvent[R]]) -> list[tuple[str, str]]:
    """Change and name of each event."""
    return [(str(event.change), event.item.metadata.name) for event in events if event.item is not None]
