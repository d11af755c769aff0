"""Nodes with secondary networks on an embedded cluster; the test is runtime, slices controller and bad network."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import Any

from msgspec import structs

from agent.calling import Journal
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, T, WatchRequest
from podtide.cluster.port import Cluster, ClusterError, NotFound, R, Unavailable, WatchEvent
from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.core.pool.pool import Owner
from podtide.networks.network import NetworkRange, network_of
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import (
    AGENT_MANAGER,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.runtime.clock import LoopClock
from podtide.runtime.disk import Disk
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

CLASSIC = {"range": "10.0.0.0/24"}
SLICED = {"range": "10.0.0.0/16", "node_slice_size": "/24", "network_name": "blue"}
NODE = "node-a"


def configuration(ipam: dict[str, Any], name: str = "mynet", **more: Any) -> bytes:
    document = {
        "cniVersion": "1.1.0",
        "name": name,
        "type": "macvlan",
        "ipam": {"type": "whereabouts"} | ipam,
    }
    return json.dumps(document | more).encode()


def understood(ipam: dict[str, Any], name: str = "mynet") -> IpamConfig:
    return parse_config(configuration(ipam, name))


def owner(
    sandbox: str, pod: str = "", *, ifname: str = "net1", uid: str | None = None, network: str = "mynet"
) -> Owner:
    """The interface of a pod that is named after its sandbox unless it is said to be another's."""
    pod = pod or f"pod-of-{sandbox}"
    return Owner(sandbox, ifname, f"uid-of-{pod}" if uid is None else uid, "default", pod, network)


Step = Exception | float | None
"""What befalls one call: it fails, it takes some seconds, or nothing."""


class NetworkLine(ClusterInterceptor):
    """A node's line to the cluster: every call is counted as `verb Kind`, and may meet with an accident."""

    def __init__(self, inner: Cluster) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()
        self.before: dict[str, list[Step]] = {}
        """Calls that have no effect, by `verb Kind`: the first step is for the first such call."""
        self.after: dict[str, list[Step]] = {}
        """Calls that have their effect, and whose answer is lost or late."""
        self.watches_break = False
        self.dies_at: tuple[int, str] | None = None
        """At which call the machine dies, and whether `before` or `after` that call had its effect."""
        self.died = asyncio.Event()
        self._number = 0

    def forget(self) -> None:
        self.calls.clear()

    async def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        if self.watches_break:
            raise Unavailable("no watch")
        async with aclosing(request.send(self._inner)) as events:
            async for event in events:
                yield event

    async def intercept(self, request: ClusterRequest[T]) -> T:
        call = f"{request.verb} {request.kind.api.kind}"
        self.calls[call] += 1
        self._number += 1
        number = self._number
        await _meet(self.before.get(call))
        await self._live(number, "before")
        try:
            answer = await request.send(self._inner)
            await _meet(self.after.get(call))
        except ClusterError:
            await self._live(number, "after")
            raise
        await self._live(number, "after")
        return answer

    async def _live(self, number: int, when: str) -> None:
        if (number, when) == self.dies_at:
            self.died.set()
        if self.died.is_set():
            await asyncio.Event().wait()  # what a dead machine waits for never comes


async def _meet(steps: "list[Step] | None") -> None:
    step = steps.pop(0) if steps else None
    if isinstance(step, Exception):
        raise step
    if step is not None:
        await asyncio.sleep(step)


class Machine:
    """A node's networks and its line to the cluster."""

    def __init__(self, networks: SecondaryNetworks, line: NetworkLine, clock: LoopClock) -> None:
        self.networks = networks
        self.line = line
        self._clock = clock

    async def add(self, whom: Owner | str, ipam: dict[str, Any], name: str = "mynet") -> list[str]:
        """The runtime's ADD; answers the addresses."""
        whom = owner(whom) if isinstance(whom, str) else whom
        given = await self.networks.add(whom, understood(ipam, name), arrived=self._clock.monotonic())
        return [str(each.address) for each in given]

    async def delete(self, whom: Owner | str, ipam: dict[str, Any] | None) -> list[str]:
        """The runtime's DEL; answers what is free now."""
        whom = owner(whom) if isinstance(whom, str) else whom
        config = understood(ipam) if ipam is not None else None
        return [str(each) for each in await self.networks.delete(whom, config)]


class Bench:
    """The cluster, and the hands that the agents' peers have in it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.clock = LoopClock()
        self.cluster = EmbeddedCluster(clock=self.clock, randomness=seeded_randomness(1))
        self.settings = settings or Settings()
        self.journal = Journal(self.clock)
        self._numbers = count()

    @asynccontextmanager
    async def machine(
        self, node: str = NODE, *, is_node: bool = True, disk: Disk | None = None
    ) -> AsyncIterator[Machine]:
        """A node whose agent runs; afterwards it is gone as if killed."""
        if is_node:
            await self.join(node)
        line = NetworkLine(self.cluster)
        networks = SecondaryNetworks(
            line,
            node,
            disk=disk,
            runtime=Runtime(
                clock=self.clock,
                randomness=seeded_randomness(f"{node}/{next(self._numbers)}"),
                log=self.journal.log,
                settings=self.settings,
            ),
        )
        task = asyncio.create_task(networks.run())
        try:
            yield Machine(networks, line, self.clock)
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def join(self, node: str = NODE) -> Node:
        """The Node registers, unless it has."""
        try:
            return await self.cluster.get(Node, node)
        except NotFound:
            return await self.cluster.create(Node(metadata=ObjectMeta(name=node)), manager=AGENT_MANAGER)

    async def cut(
        self, ipam: dict[str, Any], slice_: str, node: str = NODE, *, place: int = 0, name: str = ""
    ) -> IPPool:
        """The slices controller makes the node's pool."""
        joined = await self.join(node)
        wanted = ranges(ipam)[place]
        pool = IPPool(
            metadata=ObjectMeta(
                name=name or wanted.node_pool_name(node, wanted.addresses.network),
                namespace=SYSTEM_NAMESPACE,
                annotations={NODE_ANNOTATION: node, NODE_UID_ANNOTATION: joined.metadata.uid},
            ),
            spec=IPPoolSpec(range=slice_, allocations={}),
        )
        made = await self.cluster.create(pool, manager="podtide-controller")
        return await self.confirm(made)

    async def confirm(self, pool: IPPool) -> IPPool:
        """The slices controller has the agent use a pool that it made."""
        marks = pool.metadata.annotations | {POOL_UID_ANNOTATION: pool.metadata.uid}
        confirmed = structs.replace(pool, metadata=structs.replace(pool.metadata, annotations=marks))
        return await self.cluster.replace(confirmed, manager="podtide-controller")

    async def put_pool(self, name: str, range_: str, **allocations: IPAllocation) -> IPPool:
        """A pool is there, as somebody else wrote it."""
        entries = {key.removeprefix("_"): entry for key, entry in allocations.items()}
        pool = IPPool(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=IPPoolSpec(range=range_, allocations=entries),
        )
        return await self.cluster.create(pool, manager="whereabouts")

    async def put_reservation(self, name: str, podref: str, **more: str) -> OverlappingRangeIPReservation:
        """An address is reserved, as somebody else wrote it."""
        reservation = OverlappingRangeIPReservation(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=OverlappingRangeIPReservationSpec(podref=podref, **more),
        )
        return await self.cluster.create(reservation, manager="whereabouts")

    async def slices(self, name: str, range_: str, size: str, **nodes: str) -> None:
        """A NodeSlicePool lists which node has which slice; `free_` and so on have nobody."""
        entries = [
            NodeSliceAllocation(
                node_name="" if node.startswith("free") else node.replace("_", "-"), slice_range=slice_
            )
            for node, slice_ in nodes.items()
        ]
        pool = NodeSlicePool(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            spec=NodeSlicePoolSpec(range=range_, slice_size=size),
            status=NodeSlicePoolStatus(allocations=entries),
        )
        await self.cluster.create(pool, manager="podtide-controller")

    async def edit(self, name: str, change: Callable[[dict[str, IPAllocation]], None]) -> None:
        """Somebody else writes the pool, as repair does."""
        pool = await self.cluster.get(IPPool, name, SYSTEM_NAMESPACE)
        entries = dict(pool.spec.allocations)
        change(entries)
        spec = structs.replace(pool.spec, allocations=entries)
        await self.cluster.replace(structs.replace(pool, spec=spec), manager="podtide-controller")

    async def pool(self, name: str) -> dict[str, IPAllocation]:
        """What the pool's map holds."""
        return (await self.cluster.get(IPPool, name, SYSTEM_NAMESPACE)).spec.allocations

    async def reserved(self) -> dict[str, str]:
        """Every reservation, with whom it is for."""
        page = await self.cluster.list(OverlappingRangeIPReservation, SYSTEM_NAMESPACE)
        return {each.metadata.name: each.spec.podref for each in page.items}


def ranges(ipam: dict[str, Any]) -> tuple[NetworkRange, ...]:
    network = network_of(understood(ipam))
    assert network is not None
    return network.ranges
