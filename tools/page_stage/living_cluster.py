"""A cluster that lives: controller, agents and allocator at work in a thread, served as a real cluster is.

It is the world of `podtide demo`, with agents that are called in process: a pod has its address within milliseconds,
and nothing but the page is slow on a small machine. Everything the page reads it reads over HTTP, as in a real cluster.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from page_stage.loop_thread import PATIENCE_SECONDS, LoopThread
from podtide.allocator.service.application import make_service
from podtide.allocator.service.server import serving as serving_allocator
from podtide.allocator.store import DatabaseAllocator, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import NotFound
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.metadata_keys import SUBNET_LABEL, SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.demo.real_world import defaults_for, rules_for
from podtide.simulation.demo.stage import ship_released_lease
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.stage import Stage
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, options_for
from podtide.simulation.world.world import World

LOOPBACK = "127.0.0.1"


class ClusterPlan(Struct, frozen=True, kw_only=True):
    """What the cluster is to be."""

    cidr: str = "10.1.0.0/24"
    nodes: Sequence[str] = ("node-1", "node-2", "node-3")
    networks: Sequence[Definition] = ()
    """Secondary networks."""
    speed: float = 1.0
    """How much shorter than in the demonstration the programs wait."""
    is_recorded: bool = True
    """Whether its use is written down from the start, or only once `record` is called."""


class _Opened(Struct):
    stage: Stage
    allocator: DatabaseAllocator
    service_url: str
    service: AsyncExitStack
    is_recorded: asyncio.Event


class LivingCluster:
    """The cluster, for callers without an event loop."""

    def __init__(self, directory: Path, plan: ClusterPlan | None = None) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self.database = f"sqlite:///{directory / 'subnets.db'}"
        self._plan = plan or ClusterPlan()
        self._thread = LoopThread(self._open())

    def __enter__(self) -> Self:
        self._thread.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.__exit__(kind, error, trace)

    @property
    def allocator_url(self) -> str:
        """Where the allocator answers, unless it is away."""
        return self._thread.opened.service_url

    @property
    def pod_count(self) -> int:
        """How many pods there should be."""
        return self._thread.opened.stage.pod_count

    def add_pods(self, node: str, count: int) -> list[str]:
        """Create pods on a node, and return their names at once: their addresses come in a moment."""
        return self._thread.call(self._stage.add_pods(node, count))

    def remove_pods(self, node: str, count: int) -> None:
        """Delete the newest pods of a node."""
        self._thread.call(self._stage.remove_pods(node, count))

    def add_node(self, name: str, subnet: str = "") -> None:
        """Let a machine join, in the cluster's subnet or in another one."""
        labels = {SUBNET_LABEL: subnet} if subnet else None
        self._thread.call(self._world.add_node(name, labels=labels))

    def remove_node(self, name: str) -> None:
        """Switch a machine off and remove it."""
        self._thread.call(self._stage.remove_node(name))

    def settle(self) -> None:
        """Wait until every pod has its address."""
        self._thread.call(self._world.until(self._stage.all_served, within=PATIENCE_SECONDS))

    def record(self) -> None:
        """Write down from now on how subnets are used."""
        self._thread.call(self._record())

    def add_subnet(self, name: str, cidr: str) -> None:
        """Define another subnet at the allocator."""
        spec = SubnetSpec(network=NETWORK, name=name, cidrs=(cidr,))
        self._thread.call(self._thread.opened.allocator.add_subnet(spec))

    def forget_subnet(self, name: str) -> None:
        """Delete a subnet's objects, once no node has addresses in it."""
        self._thread.call(self._forget(name))

    def stop_allocator(self) -> None:
        """Let nothing answer at the allocator's URL any more."""
        self._thread.call(self._thread.opened.service.aclose())

    def start_allocator(self) -> None:
        """Let the allocator answer again, where it did."""
        self._thread.call(_serve(self._thread.opened))

    async def _record(self) -> None:
        self._thread.opened.is_recorded.set()

    async def _forget(self, subnet: str) -> None:
        async def is_left() -> bool:
            configs = (await self._world.cluster.list(NodeNetworkConfig)).items
            return all(
                container.subnet_name != subnet
                for config in configs
                for container in config.status.network_containers
            )

        await self._world.until(is_left, within=PATIENCE_SECONDS)
        for kind in (ClusterSubnet, ClusterSubnetState):
            with suppress(NotFound):
                await self._world.cluster.delete(kind, subnet, SYSTEM_NAMESPACE)

    @property
    def _stage(self) -> Stage:
        return self._thread.opened.stage

    @property
    def _world(self) -> World:
        return self._stage.world

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[_Opened]:
        plan, clock = self._plan, SystemClock()
        log = make_logger(StringIO(), clock, level="error")
        cluster = EmbeddedCluster(kinds=SERVED_KINDS, clock=clock)
        async with (
            await open_allocator(
                self.database, clock=clock, rules=rules_for(plan.speed), migrate=True
            ) as allocator,
            serving(cluster.server, ListenAddress(LOOPBACK, 0)) as url,
            AsyncExitStack() as service,
        ):
            write_kubeconfig(self.kubeconfig, url)
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(plan.cidr,)))
            async with World(
                cluster,
                allocator,
                options_for((plan.cidr,)),
                defaults=defaults_for(plan.speed),
                networks=tuple(plan.networks),
                clock=clock,
                seed=1,
                log=log,
            ) as world:
                opened = _Opened(Stage(world), allocator, "", service, asyncio.Event())
                await _serve(opened)
                await world.define_networks()
                await ship_released_lease(world)
                world.start_controller(elected=True)
                for name in plan.nodes:
                    await world.add_node(name)
                sampling = asyncio.create_task(_sample(allocator, opened.is_recorded))
                if plan.is_recorded:
                    opened.is_recorded.set()
                yield opened
                sampling.cancel()
        cluster.close()


async def _sample(allocator: DatabaseAllocator, is_recorded: asyncio.Event) -> None:
    """Write down how subnets are used, as the allocator's program does."""
    await is_recorded.wait()
    while True:
        await allocator.sample()
        await asyncio.sleep(1)


async def _serve(opened: _Opened) -> None:
    world = opened.stage.world
    service = make_service(
        opened.allocator, log=world.log, clock=world.clock, randomness=seeded_randomness("requests")
    )
    port = int(opened.service_url.rpartition(":")[2] or 0)
    opened.service_url = await opened.service.enter_async_context(
        serving_allocator(service, ListenAddress(LOOPBACK, port))
    )
