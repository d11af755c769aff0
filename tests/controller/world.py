"""A cluster, an allocator with subnets, and controllers, all on virtual time; the test plays kubelets and agents."""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from fractions import Fraction
from typing import Any

from msgspec import structs

from cluster.faulty_cluster import Faults, FaultyCluster, Script
from podtide.allocator.containers import AllocatedContainer, MoveResult, Wish
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store import DatabaseAllocator, InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import (
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    SubnetUsage,
    UsageStep,
)
from podtide.allocator.terms import HeldContainer, TermClaim
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.lease_record import released
from podtide.cluster.port import Cluster, NotFound, Page, R, WatchEvent
from podtide.controller.program import ALONE, LEASE, Controller, ControllerOptions
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import Condition
from podtide.resources.event import Event
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import (
    STATEMENT_ANNOTATION,
    SYSTEM_NAMESPACE,
    UNREQUESTED_ANNOTATION,
    WAITING_PODS_ANNOTATION,
)
from podtide.resources.namespace import Namespace
from podtide.resources.node import Node, NodeAddress, NodeStatus
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.statement_annotation import number_in, render
from podtide.runtime.clock import Clock, LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

OPTIONS = ControllerOptions(cluster="east", network="blue", subnet="pods")
HALF = Fraction(1, 2)
_A_MOMENT = 1.0
"""Virtual seconds in which a controller has done all that needs no waiting."""


class WatchedAllocator(DatabaseAllocator):
    """The allocator, with its calls counted and, if wanted, going wrong before or after they took effect."""

    def __init__(self, inner: DatabaseAllocator) -> None:
        super().__init__(inner._database, clock=inner._clock, rules=inner._rules)
        self.wishes: list[Wish] = []
        self.calls: Counter[str] = Counter()
        self.faults: Faults = Script()

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        self.wishes.append(wish)
        self.calls["put"] += 1
        await self.faults.before("put")
        answer = await super().put_container(wish)
        await self.faults.after("put")
        return answer

    async def move_container(self, wish: Wish) -> MoveResult:
        self.wishes.append(wish)
        self.calls["move"] += 1
        await self.faults.before("move")
        answer = await super().move_container(wish)
        await self.faults.after("move")
        return answer

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        self.calls["delete"] += 1
        await self.faults.before("delete")
        await super().delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid)
        await self.faults.after("delete")

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        self.calls["adopt"] += 1
        await self.faults.before("adopt")
        return await super().adopt_container(held)

    async def get_subnet(self, network: str, name: str) -> Subnet:
        self.calls["get_subnet"] += 1
        return await super().get_subnet(network, name)

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        self.calls["demand"] += 1
        await self.faults.before("demand")
        return await super().demand(network, name)

    async def usage_history(
        self, network: str, name: str, *, since: float, until: float, step: UsageStep = "auto"
    ) -> tuple[SubnetUsage, ...]:
        await self.faults.before("usage_history")
        return await super().usage_history(network, name, since=since, until=until, step=step)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        self.calls["put_in_force"] += 1
        await self.faults.before("put_in_force")
        answer = await super().put_in_force(network, name, decided)
        await self.faults.after("put_in_force")
        return answer


Writes = list[str]


class CountedCluster(FaultyCluster):
    """A controller's own way to the cluster: its writes are listed, by kind and by method."""

    def __init__(self, inner: Cluster, faults: Faults | None = None) -> None:
        super().__init__(inner, faults or Script())
        self.writes: list[str] = []
        self.hidden: set[str] = set()
        """Names that lists leave out, as a stale cache of an API server does."""
        self._deaf_to: type[Resource] | None = None
        self._hears = asyncio.Event()

    async def list(self, kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
        page = await super().list(kind, namespace, **more)
        return structs.replace(
            page, items=[item for item in page.items if item.metadata.name not in self.hidden]
        )

    async def watch(
        self, kind: type[R], namespace: str = "", **more: Any
    ) -> AsyncGenerator[WatchEvent[R], None]:
        async with aclosing(super().watch(kind, namespace, **more)) as events:
            async for event in events:
                if kind is self._deaf_to:
                    await self._hears.wait()
                yield event

    def turn_deaf(self, kind: type[Resource]) -> None:
        """Hear of nothing that happens to this kind, until `hear`."""
        self._deaf_to = kind
        self._hears.clear()

    def hear(self) -> None:
        """Hear of everything, what was missed first."""
        self._hears.set()

    async def create(self, item: R, *, manager: str) -> R:
        self.writes.append(f"create {item.api.kind}")
        return await super().create(item, manager=manager)

    async def replace(self, item: R, *, manager: str) -> R:
        self.writes.append(f"replace {item.api.kind}")
        return await super().replace(item, manager=manager)

    async def replace_status(self, item: R, *, manager: str) -> R:
        self.writes.append(f"status {item.api.kind}")
        return await super().replace_status(item, manager=manager)

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        self.writes.append(f"delete {kind.api.kind}")
        await super().delete(kind, name, namespace, uid=uid, resource_version=resource_version)

    def about(self, kind: str) -> Writes:
        """What was written of one kind."""
        return [write for write in self.writes if write.endswith(f" {kind}")]

    def work(self) -> Writes:
        """What was written but for the leader's Lease."""
        return [write for write in self.writes if not write.endswith(" Lease")]


class Replica:
    """One controller, started and stopped at will."""

    def __init__(
        self,
        world: "World",
        options: ControllerOptions,
        settings: Settings,
        *,
        faults: Faults | None = None,
        clock: Clock | None = None,
        name: str = "a",
    ) -> None:
        self.name = name
        self.cluster = CountedCluster(world.cluster, faults)
        self.controller = Controller(
            self.cluster,
            world.allocator,
            options,
            runtime=Runtime(
                clock=clock or LoopClock(),
                randomness=seeded_randomness(name),
                log=make_logger(world.lines, LoopClock()),
                settings=settings,
            ),
        )
        self._task: asyncio.Task[Any] | None = None

    def start(self, *, elected: bool = False) -> "asyncio.Task[Any]":
        run = self.controller.run_elected(self.name) if elected else self.controller.run()
        self._task = asyncio.create_task(run)
        return self._task

    async def stop(self) -> None:
        """As killing it would: whatever it is at, it gets no further."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
            assert self._task.cancelled()


class World:
    """Where controllers run."""

    def __init__(self, allocator: DatabaseAllocator, seed: int = 1) -> None:
        """Worlds of one seed would have Nodes of the same uids."""
        self.cluster = EmbeddedCluster(clock=LoopClock(), randomness=seeded_randomness(seed))
        self.allocator = WatchedAllocator(allocator)
        self.lines = io.StringIO()
        self._replicas: list[Replica] = []

    def replica(
        self, options: ControllerOptions = OPTIONS, settings: Settings | None = None, **more: Any
    ) -> Replica:
        replica = Replica(self, options, settings or Settings(), **more)
        self._replicas.append(replica)
        return replica

    async def stop(self) -> None:
        for replica in self._replicas:
            await replica.stop()

    async def add_subnet(self, cidr: str, name: str = "pods", **more: Any) -> Subnet:
        spec = SubnetSpec(network="blue", name=name, cidrs=(cidr,), **more)
        return await self.allocator.add_subnet(spec)

    def relist(self) -> None:
        """Have every informer list anew."""
        self.cluster.server.expire_history()
        self.cluster.server.close_watches()

    def stop_collecting_garbage(self) -> None:
        """As in a cluster whose controller manager is away."""
        self.cluster.server.housekeeping.is_collecting = False

    async def subnet(self, name: str = "pods") -> Subnet:
        return await self.allocator.get_subnet("blue", name)

    async def ship_lease(self) -> None:
        """A Lease that was given up, so that the first replica leads at once."""
        place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
        await self.cluster.create(Lease(metadata=place, spec=released(LeaseSpec())), manager="test")

    async def add_node(self, name: str, labels: dict[str, str] | None = None, *ips: str) -> Node:
        addresses = [NodeAddress(type="InternalIP", address=ip) for ip in ips]
        node = Node(
            metadata=ObjectMeta(name=name, labels=labels or {}), status=NodeStatus(addresses=addresses)
        )
        return await self.cluster.create(node, manager="kubelet")

    async def label(self, name: str, labels: dict[str, str]) -> None:
        node = await self.cluster.get(Node, name)
        changed = structs.replace(node, metadata=structs.replace(node.metadata, labels=labels))
        await self.cluster.replace(changed, manager="kubectl")

    async def remove_node(self, name: str) -> None:
        await self.cluster.delete(Node, name)

    async def ask(
        self, name: str, count: int, release: list[str] | None = None, waiting: int | None = None
    ) -> NodeNetworkConfig:
        """State a node's request as its agent does."""
        uid = (await self.config(name)).metadata.uid
        notes = {} if waiting is None else {WAITING_PODS_ANNOTATION: str(waiting)}
        place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE, uid=uid, annotations=notes)
        spec = NodeNetworkConfigSpec(requested_ip_count=count, ips_not_in_use=release or [])
        return await self.cluster.apply(NodeNetworkConfig(metadata=place, spec=spec), manager="agent")

    async def state(
        self, name: str, demand: int, *, batch: int = 16, buffer: Fraction = HALF, top: int = 16
    ) -> None:
        """State a node's demand and what it asks for by that, and give back what is held beyond, as its agent does."""
        config = await self.config(name)
        request = request_at(demand, Scaler(batch, buffer), 1)
        statement = Statement(
            demand=demand,
            batch=batch,
            buffer=buffer,
            max_ips=DEFAULT_MAX_IPS,
            primaries=1,
            request=request,
            number=number_in(config.metadata.annotations) + 1,
            top=top,
        )
        place = ObjectMeta(
            name=name,
            namespace=SYSTEM_NAMESPACE,
            uid=config.metadata.uid,
            annotations={STATEMENT_ANNOTATION: render(statement), UNREQUESTED_ANNOTATION: "0"},
        )
        held = [each.name for each in config.status.network_containers[0].ip_assignments]
        spec = NodeNetworkConfigSpec(requested_ip_count=request, ips_not_in_use=held[request:])
        await self.cluster.apply(NodeNetworkConfig(metadata=place, spec=spec), manager="agent")

    async def config(self, name: str) -> NodeNetworkConfig:
        return await self.cluster.get(NodeNetworkConfig, name, SYSTEM_NAMESPACE)

    async def find_config(self, name: str) -> NodeNetworkConfig | None:
        return await self.find(NodeNetworkConfig, name)

    async def find(self, kind: type[R], name: str, namespace: str = SYSTEM_NAMESPACE) -> R | None:
        try:
            return await self.cluster.get(kind, name, namespace)
        except NotFound:
            return None

    async def holds(self, container: str, cluster: str = "east") -> int:
        """Secondary addresses of a container at the allocator; -1 when there is none."""
        try:
            return len((await self.allocator.get_container(container, cluster=cluster)).addresses)
        except NoSuchContainer:
            return -1

    async def reserve(self, reserved: int) -> None:
        """Have a node of another cluster hold as much as makes so many reserved in the subnet in all."""
        if await self.holds("uid-w1", cluster="west") < 0:
            await self.foreign_node("w1", 0)
        held = await self.allocator.get_container("uid-w1", cluster="west")
        count = len(held.addresses) + reserved - (await self.subnet()).reserved
        release = tuple(each.name for each in held.addresses[count:])
        await self.foreign_node("w1", count, generation=held.generation + 1, release=release)

    async def uid(self) -> str:
        """Who the cluster is."""
        return (await self.cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid

    async def claim(self) -> TermClaim:
        """The claim of a controller that is not elected."""
        return TermClaim(cluster="east", cluster_uid=await self.uid(), holder=ALONE)

    async def foreign_node(
        self,
        name: str,
        count: int,
        cluster: str = "west",
        *,
        generation: int = 1,
        release: tuple[str, ...] = (),
        cluster_uid: str = "",
    ) -> str:
        """A node of another cluster that shares the subnet: the id of its container."""
        wish = wish_of(name, count, cluster=cluster, generation=generation, release=release)
        wish = structs.replace(wish, cluster_uid=cluster_uid)
        await DatabaseAllocator.put_container(self.allocator, wish)
        return wish.id

    async def names(self, node: str, container: int = 0) -> list[str]:
        """Names of the addresses a node holds."""
        held = (await self.config(node)).status.network_containers[container]
        return [each.name for each in held.ip_assignments]

    async def granted(self, node: str) -> Condition:
        return condition(await self.config(node), "Granted")

    async def cluster_subnet(self, name: str = "pods") -> ClusterSubnet:
        return await self.cluster.get(ClusterSubnet, name, SYSTEM_NAMESPACE)

    async def cluster_subnet_state(self, name: str = "pods") -> ClusterSubnetState:
        return await self.cluster.get(ClusterSubnetState, name, SYSTEM_NAMESPACE)

    async def events(self, about: Resource | None = None) -> list[str]:
        """The reasons of all Events, or of those about an object, oldest first."""
        page = await self.cluster.list(Event, SYSTEM_NAMESPACE)
        mine = [
            event for event in page.items if about is None or event.involved_object.uid == about.metadata.uid
        ]
        return [event.reason for event in sorted(mine, key=lambda event: event.first_timestamp or "")]

    async def everybody(self) -> set[str]:
        """Every address that a NodeNetworkConfig shows, but for what its node gave back; none may be shown twice."""
        configs = (await self.cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)).items
        shown = []
        for config in configs:
            for held in config.status.network_containers:
                shown.append(held.primary_ip or held.primary_ipv6)
                shown += [
                    each.ip for each in held.ip_assignments if each.name not in config.spec.ips_not_in_use
                ]
        assert len(shown) == len(set(shown))
        return set(shown)


def wish_of(
    node: str, count: int, *, cluster: str, generation: int = 1, release: tuple[str, ...] = ()
) -> Wish:
    """A wish that no controller of ours made."""
    return Wish(
        id=f"uid-{node}",
        network="blue",
        subnet="pods",
        cluster=cluster,
        node=node,
        request_uid=f"request-{node}",
        generation=generation,
        count=count,
        release=release,
    )


def condition(item: NodeNetworkConfig | ClusterSubnet, kind: str) -> Condition:
    return next(each for each in item.status.conditions if each.type == kind)


async def moment(seconds: float = _A_MOMENT) -> None:
    """Let everything happen that needs no waiting."""
    await asyncio.sleep(seconds)


@asynccontextmanager
async def a_world(cidr: str = "10.1.0.0/24", rules: StoreRules | None = None) -> AsyncIterator[World]:
    """A world with one subnet; the allocator's books must be right at the end."""
    async with await open_allocator(
        "sqlite:///:memory:", clock=LoopClock(), rules=rules, executor=InlineExecutor(), migrate=True
    ) as allocator:
        world = World(allocator)
        if cidr:
            await world.add_subnet(cidr)
        try:
            yield world
        finally:
            await world.stop()
            world.cluster.close()
        assert await allocator.audit() == ()


async def crowd(world: World, demand: int = 15) -> list[str]:
    """Eight nodes, which in a /24 bring the batch down to 8 by a demand of 15."""
    names = [f"n{number}" for number in range(8)]
    for name in names:
        await world.add_node(name)
    await moment()
    for name in names:
        await world.state(name, demand)
    await moment(10)
    return names


async def override(world: World, **scaler: Any) -> None:
    """Somebody edits the spec of the ClusterSubnet."""
    shown = await world.cluster_subnet()
    spec = ClusterSubnetSpec(scaler=ScalerOverride(**scaler))
    await world.cluster.replace(structs.replace(shown, spec=spec), manager="kubectl")


async def in_force(world: World, name: str = "pods") -> tuple[int, float]:
    """The batch and buffer that nodes are told."""
    scaler = (await world.cluster_subnet(name)).status.scaler
    assert scaler is not None
    return scaler.batch, scaler.buffer
