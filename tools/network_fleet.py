"""Secondary networks of a large cluster: the real slices controller, leak repair and agents, on a busy API server.

Two replicas of the controller stand for election, as in production; the second only waits.
"""

import asyncio
import io
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import structs

from busy_api_server import CALL_SECONDS, BusyApiServer
from kubelet_deadline import Attached, attach
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.cluster.informer import Informer
from podtide.cluster.leader_election import LeaderElection
from podtide.cluster.lease_record import released
from podtide.cluster.port import Cluster
from podtide.cluster.term import Term
from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.controller.counts import ControllerCounts
from podtide.controller.fencing import GuardedWrites
from podtide.controller.options import NetworkOptions
from podtide.controller.program import LEASE
from podtide.controller.repair.repair_loop import RepairLoop
from podtide.controller.slices.program import SliceController
from podtide.core.networks.leaks import LeakGrace
from podtide.core.pool.pool import Owner
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

AGENTS, CONTROLLER = "agents", "controller"
"""The programs, as their calls are counted."""

_REPLICAS = ("controller-a", "controller-b")
_NAMESPACE = "default"
_PATIENCE_SECONDS = 3600.0
_BY_OTHERS = "kubelet"


def network_text(name: str, **ipam: str) -> str:
    """The configuration of a network of that name."""
    keys = {"type": "podtide", "network_name": name, **ipam}
    document = {"cniVersion": "1.1.0", "name": name, "type": "macvlan", "ipam": keys}
    return msgspec.json.encode(document).decode()


class NetworkFleet:
    """A cluster with networks, a controller of two replicas, and an agent on every node."""

    def __init__(self, configurations: Sequence[str], call_seconds: float = CALL_SECONDS) -> None:
        self.clock = LoopClock()
        self.server = BusyApiServer(call_seconds)
        self.traffic = self.server.traffic
        self.configs: list[IpamConfig] = [parse_config(text) for text in configurations]
        self._configurations = configurations
        self._log = make_logger(io.StringIO(), self.clock, level="error")
        self._agents: dict[str, SecondaryNetworks] = {}
        self._tasks: dict[str, asyncio.Task[object]] = {}

    async def open(self, nodes: Sequence[str]) -> None:
        """Networks are defined, nodes join, and every one of them gets its slices."""
        for config, text in zip(self.configs, self._configurations, strict=True):
            place = ObjectMeta(name=config.name, namespace=_NAMESPACE)
            definition = NetworkAttachmentDefinition(
                metadata=place, spec=NetworkAttachmentDefinitionSpec(config=text)
            )
            await self.server.cluster.create(definition, manager=_BY_OTHERS)
        lease = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
        await self.server.cluster.create(
            Lease(metadata=lease, spec=released(LeaseSpec())), manager=_BY_OTHERS
        )
        for identity in _REPLICAS:
            self._tasks[identity] = asyncio.create_task(self._stand(identity))
        for name in nodes:
            await self.join(name)
        await self.until_pools(len(nodes))

    async def register(self, name: str) -> None:
        """A node comes on which no agent runs yet."""
        await self.server.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=_BY_OTHERS)

    async def join(self, name: str) -> None:
        """A node with an agent comes."""
        await self.register(name)
        agent = self._agents[name] = SecondaryNetworks(
            self.server.line(AGENTS),
            name,
            runtime=Runtime(
                clock=self.clock, randomness=seeded_randomness(name), log=self._log, settings=Settings()
            ),
        )
        self._tasks[name] = asyncio.create_task(agent.run())

    async def leave(self, name: str) -> None:
        """A node is lost, with all its pods, whose addresses nobody gives back."""
        cluster = self.server.cluster
        await self._end(name)
        await cluster.delete(Node, name)
        for pod in (await cluster.list(Pod, _NAMESPACE, fields=f"spec.nodeName={name}")).items:
            failed = structs.replace(pod, status=PodStatus(phase=PodPhase.FAILED))
            await cluster.replace_status(failed, manager=_BY_OTHERS)
            await cluster.delete(Pod, pod.metadata.name, _NAMESPACE)

    async def until_pools(self, nodes: int, look_every_seconds: float = 1.0) -> None:
        """Wait until so many nodes have a pool of every network, and nobody else has."""
        deadline = self.clock.monotonic() + _PATIENCE_SECONDS
        while await self.pools() != nodes * len(self.configs):
            assert self.clock.monotonic() < deadline
            await asyncio.sleep(look_every_seconds)

    async def add_pod(self, node: str, name: str, networks: int) -> Attached:
        """A pod is started on a node, with an interface in each of the first networks."""
        spec = PodSpec(node_name=node, containers=[PodContainer(name="main", image="none")])
        pod = await self.server.cluster.create(
            Pod(metadata=ObjectMeta(name=name, namespace=_NAMESPACE), spec=spec), manager=_BY_OTHERS
        )

        async def add(number: int) -> None:
            config = self.configs[number]
            owner = Owner(f"sandbox-{name}", f"net{number}", pod.metadata.uid, _NAMESPACE, name, config.name)
            await self._agents[node].add(owner, config, arrived=self.clock.monotonic())

        return await attach(add, networks, self.clock)

    async def close(self) -> None:
        """End everything."""
        for name in list(self._tasks):
            await self._end(name)
        self.server.cluster.close()

    async def pools(self) -> int:
        """How many nodes' pools there are, of all networks together."""
        pools = (await self.server.cluster.list(IPPool)).items
        return sum(NODE_ANNOTATION in pool.metadata.annotations for pool in pools)

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name)
        assert not task.done(), task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _stand(self, identity: str) -> None:
        line = self.server.line(CONTROLLER)
        election = LeaderElection(
            line,
            LEASE,
            identity,
            runtime=Runtime(
                clock=self.clock, randomness=seeded_randomness(identity), log=self._log, settings=Settings()
            ),
        )
        await election.run(lambda term: self._lead(line, term))

    async def _lead(self, line: Cluster, term: Term) -> None:
        counts, settings = ControllerCounts(), Settings()
        runtime = Runtime(
            clock=self.clock, randomness=seeded_randomness("leader"), log=self._log, settings=settings
        )
        nodes = Informer(line, Node, runtime=runtime)
        writes = GuardedWrites(line, term.check, counts.writes)
        slices = SliceController(writes, nodes, NetworkOptions(), counts=counts, runtime=runtime)
        repair = RepairLoop(
            writes,
            nodes,
            NetworkOptions(),
            patience=LeakGrace(
                leak_grace_seconds=settings.leak_grace_seconds,
                quarantine_seconds=settings.quarantine_seconds,
            ),
            counts=counts.repair,
            runtime=runtime,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(nodes.run())
            group.create_task(slices.run())
            await nodes.synced.wait()
            group.create_task(repair.run())
