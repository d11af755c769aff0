"""Around an agent that is a process: the cluster it reaches over HTTP, a controller, and an allocator on SQLite.

The subnet is shared with another cluster, played here, which can take so much of it that this one has to give back.
What happens to the node's NodeNetworkConfig is noticed the moment it is written, for those who want to strike then.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from io import StringIO
from pathlib import Path

from msgspec import structs

from agent.agent_process import Shown
from cli.processes import served_cluster
from podtide.allocator.containers import Wish
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store import DatabaseAllocator, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer
from podtide.controller.options import ControllerOptions
from podtide.controller.program import Controller
from podtide.core.audit.invariants import NodeView, Picture
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings
from podtide.simulation.checks.picture import MachineView, take_picture
from podtide.simulation.nodes.kubelet import Sandbox

NODE = "node-1"
NETWORK, SUBNET = "blue", "pods"
OURS, OTHER = "east", "west"
QUICK = Settings(poll_seconds=0.2, answer_wait_seconds=0.2, starved_dwell_seconds=0.2, cooldown_seconds=0.0)
"""An address that was given back is given out again as soon as can be: mistakes show at once."""


class Moment(StrEnum):
    """What can happen to the node's NodeNetworkConfig."""

    ASKED = "the agent asked for more"
    GRANTED = "the controller brought addresses"
    NAMED = "the agent named addresses that it gives up"
    RELEASED = "the controller took them"


class SharedSubnet:
    """The node's surroundings."""

    def __init__(self, cluster: EmbeddedCluster, allocator: DatabaseAllocator, node: Node) -> None:
        self.cluster = cluster
        self.allocator = allocator
        self._node = node
        self._named: set[str] = set()
        self._moments = {moment: asyncio.Event() for moment in Moment}
        self._others_generation = 0

    async def next(self, moment: Moment) -> None:
        """Wait until this happens."""
        self._moments[moment].clear()
        await self._moments[moment].wait()

    def notice(self, old: NodeNetworkConfig | None, new: NodeNetworkConfig | None) -> None:
        """The node's NodeNetworkConfig changed."""
        if old is None or new is None:
            return
        before, after = granted_names(old), granted_names(new)
        happened = {
            Moment.ASKED: new.spec.requested_ip_count > old.spec.requested_ip_count,
            Moment.GRANTED: bool(after - before),
            Moment.NAMED: not set(new.spec.ips_not_in_use) <= self._named,
            Moment.RELEASED: bool(before - after),
        }
        self._named.update(new.spec.ips_not_in_use)
        for moment, is_so in happened.items():
            if is_so:
                self._moments[moment].set()

    async def other_cluster_takes(self, count: int) -> None:
        """The other cluster wants so many addresses of the subnet, and gives back what it has beyond."""
        held: tuple[str, ...] = ()
        with suppress(NoSuchContainer):
            container = await self.allocator.get_container(OTHER, cluster=OTHER)
            held = tuple(address.name for address in container.addresses)
        self._others_generation += 1
        await self.allocator.put_container(
            Wish(
                id=OTHER,
                network=NETWORK,
                subnet=SUBNET,
                cluster=OTHER,
                node=OTHER,
                request_uid=OTHER,
                generation=self._others_generation,
                count=count,
                release=held[count:],
            )
        )

    async def granted(self) -> tuple[set[str], set[str]]:
        """The names of the node's addresses, by the NodeNetworkConfig and by the allocator."""
        config = await self.cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        container = await self.allocator.get_container(self._node.metadata.uid, cluster=OURS)
        return granted_names(config), {address.name for address in container.addresses}

    async def picture(self, shown: Iterable[Shown], sandboxes: Iterable[Sandbox]) -> Picture:
        """What agent, runtime and allocator say of the addresses. The agent was asked before."""
        sighting = MachineView(
            node=NODE,
            uid=self._node.metadata.uid,
            addresses=None,
            sandboxes=tuple(sandboxes),
            named=frozenset(),
            giver=lambda _ip: self._node.metadata.uid,
        )
        picture = await take_picture((sighting,), self.allocator, NETWORK)
        # The names come last: what the allocator has let go by now was named by now.
        states = {each.ip: each.state for each in shown}
        view = NodeView(sighting.identity, states, frozenset(self._named))
        return structs.replace(picture, nodes=(view,))


def granted_names(config: NodeNetworkConfig) -> set[str]:
    """The names in all of its network containers."""
    return {each.name for container in config.status.network_containers for each in container.ip_assignments}


@asynccontextmanager
async def shared_subnet(directory: Path, kubeconfig: Path, cidr: str) -> AsyncIterator[SharedSubnet]:
    """All of it at work, with one node whose agent is still to come."""
    clock, randomness = SystemClock(), system_randomness()
    log = make_logger(StringIO(), clock, level="error")
    rules = StoreRules(cooldown_seconds=QUICK.cooldown_seconds)
    database = f"sqlite:///{directory / 'subnets.db'}"
    async with (
        served_cluster(kubeconfig) as cluster,
        await open_allocator(database, clock=clock, rules=rules, migrate=True) as allocator,
        asyncio.TaskGroup() as programs,
    ):
        await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(cidr,)))
        node = await cluster.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
        around = SharedSubnet(cluster, allocator, node)
        configs = Informer(
            cluster, NodeNetworkConfig, runtime=Runtime(clock=clock, randomness=randomness, log=log)
        )
        configs.add_handler(around.notice)
        controller = Controller(
            cluster,
            allocator,
            ControllerOptions(cluster=OURS, network=NETWORK, subnet=SUBNET),
            runtime=Runtime(clock=clock, randomness=randomness, log=log, settings=QUICK),
        )
        tasks = [programs.create_task(each) for each in (configs.run(), controller.run())]
        try:
            yield around
        finally:
            for task in tasks:
                task.cancel()
