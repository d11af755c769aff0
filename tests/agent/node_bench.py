"""A node agent on an embedded cluster, with the test in the place of scheduler, kubelet and request controller."""

import asyncio
import io
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from cluster.faulty_cluster import Faults, FaultyCluster, Script
from podtide.agent.bridge.port import Bridge
from podtide.agent.pool.cns_state import CnsStateFile
from podtide.agent.pool.pods import CONFIG_HASH_ANNOTATION
from podtide.agent.port import PodAddress
from podtide.agent.program import AgentOptions, NodeAgent
from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer
from podtide.cluster.port import Conflict, NotFound, R, WatchEvent
from podtide.core.pool.pool import Owner
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerInForce
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.metadata_keys import CONTAINER_FINALIZER, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
)
from podtide.resources.pod import Pod, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings
from podtide.runtime.wakeup import Wakeup

NODE = "node-1"
SUBNET = "pods"
MANAGER = "test"


class CountingCluster(FaultyCluster):
    """Knows which watches are open, and what was applied when."""

    def __init__(self, inner: EmbeddedCluster, faults: Faults) -> None:
        super().__init__(inner, faults)
        self.applied: list[NodeNetworkConfig] = []
        self.applied_at: list[float] = []
        self.watching: Counter[str] = Counter()
        self.watched: Counter[str] = Counter()

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        assert isinstance(item, NodeNetworkConfig)
        self.applied.append(item)
        self.applied_at.append(asyncio.get_running_loop().time())
        return await super().apply(item, manager=manager, force=force)

    async def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, fields: str = "", labels: str = ""
    ) -> AsyncGenerator[WatchEvent[R], None]:
        what = f"{kind.api.kind} {fields}"
        self.watching[what] += 1
        self.watched[what] += 1
        events = super().watch(
            kind, namespace, resource_version=resource_version, fields=fields, labels=labels
        )
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self.watching[what] -= 1

    @property
    def requests(self) -> list[int]:
        """What was asked for, write by write."""
        return [config.spec.requested_ip_count for config in self.applied]

    def is_watching(self, what: str) -> bool:
        """Whether a watch of this kind and selector is open."""
        return self.watching[what] > 0


class Bench:
    """The node, its agent, and the hands that drive the rest of the cluster."""

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        settings: Settings | None = None,
        policy: RequestPolicy | None = None,
        disk: MemoryDisk | None = None,
        bridge: Bridge | None = None,
        cns_state_file: Path | None = None,
    ) -> None:
        self.bridge = bridge
        self.cns_state_file = cns_state_file
        self.clock = LoopClock()
        self.server = EmbeddedCluster(clock=self.clock, randomness=seeded_randomness(1))
        self.cluster = CountingCluster(self.server, faults or Script())
        self.disk = disk or MemoryDisk()
        self.settings = settings or Settings()
        self.policy = policy or ExactPolicy()
        self.lines = io.StringIO()
        self.capacity = 1000
        """How many addresses the subnet has for this node."""
        self.agent: NodeAgent
        self._minted = 0

    # The agent

    def make_agent(self) -> NodeAgent:
        """An agent that is not connected yet."""
        log = make_logger(self.lines, self.clock)
        self.agent = NodeAgent(
            self.cluster,
            NODE,
            self.disk,
            runtime=Runtime(
                clock=self.clock,
                randomness=seeded_randomness(2),
                log=log,
                settings=self.settings,
            ),
            options=AgentOptions(
                policy=self.policy,
                bridge=self.bridge,
                cns_state=CnsStateFile(self.cns_state_file, log=log)
                if self.cns_state_file is not None
                else None,
            ),
        )
        return self.agent

    @asynccontextmanager
    async def running(self, *, sync: bool = True) -> AsyncIterator[NodeAgent]:
        """The agent runs, and has seen everything if `sync`; afterwards it is gone as if killed."""
        task = asyncio.create_task(self.make_agent().run())
        try:
            if sync:
                await self.agent.synced.wait()
            yield self.agent
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self.agent.close()

    async def settle(self, seconds: float = 5.0) -> None:
        """Let everything happen that does not wait for longer on purpose."""
        await asyncio.sleep(seconds)

    async def add(
        self, sandbox: str, pod: Pod | None = None, wanted: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """The runtime's ADD; answers the addresses."""
        given = await self.agent.addresses.add(
            owner(sandbox, pod), arrived=self.clock.monotonic(), wanted=wanted
        )
        return ips(given)

    def delete(self, sandbox: str, pod: Pod | None = None) -> tuple[str, ...]:
        """The runtime's DEL; answers what is free now."""
        return ips(self.agent.addresses.delete(owner(sandbox, pod)))

    def log(self, event: str) -> list[dict[str, Any]]:
        """What was logged under this heading."""
        records = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [record for record in records if record["event"] == event]

    # The request controller

    async def join(self, *containers: NetworkContainer, fill_in: bool = True) -> NodeNetworkConfig:
        """The Node registers, and gets its NodeNetworkConfig with empty network containers."""
        node = await self.server.create(Node(metadata=ObjectMeta(name=NODE)), manager=MANAGER)
        return await self.make_config(node, *containers, fill_in=fill_in)

    async def make_config(
        self, node: Node, *containers: NetworkContainer, fill_in: bool = True
    ) -> NodeNetworkConfig:
        """A NodeNetworkConfig that belongs to this Node."""
        reference = OwnerReference(
            api_version="v1", kind="Node", name=NODE, uid=node.metadata.uid, controller=True
        )
        config = NodeNetworkConfig(
            metadata=ObjectMeta(
                name=NODE,
                namespace=SYSTEM_NAMESPACE,
                owner_references=[reference],
                # Containers of any ids are podtide's by this.
                finalizers=[CONTAINER_FINALIZER] if containers else [],
            )
        )
        config = await self.server.create(config, manager=MANAGER)
        if fill_in:
            config = await self.fill_in(containers or (container(node.metadata.uid),))
        return config

    async def config(self) -> NodeNetworkConfig:
        return await self.server.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)

    async def fill_in(self, containers: Sequence[NetworkContainer], **status: Any) -> NodeNetworkConfig:
        """Write the status."""
        config = await self.config()
        new = structs.replace(
            config.status, network_containers=list(containers), status=ConfigStatus.UPDATED, **status
        )
        return await self.server.replace_status(structs.replace(config, status=new), manager=MANAGER)

    async def grant(self) -> NodeNetworkConfig:
        """Do once what the controller does: release what is named, then give what is asked for, if there is any."""
        config = await self.config()
        return await self.fill_in(
            [self._granted(each, config.spec) for each in config.status.network_containers]
        )

    def _granted(self, before: NetworkContainer, spec: NodeNetworkConfigSpec) -> NetworkContainer:
        kept = [each for each in before.ip_assignments if each.name not in spec.ips_not_in_use]
        wanted = min(spec.requested_ip_count, self.capacity)
        fresh = [self._mint(before) for _ in range(wanted - len(kept))]
        after = kept + fresh
        is_short = len(after) < spec.requested_ip_count
        return structs.replace(
            before,
            ip_assignments=after,
            version=before.version + (after != before.ip_assignments),
            status=ContainerStatus.SUBNET_FULL if is_short else ContainerStatus.SUCCESS,
        )

    def _mint(self, to: NetworkContainer) -> IPAssignment:
        self._minted += 1
        number = self._minted
        ip = f"fd00::{number:x}" if to.primary_ipv6 else f"10.0.{number // 250}.{number % 250 + 2}"
        return IPAssignment(name=f"{to.id}-{number}", ip=ip)

    @asynccontextmanager
    async def controller(self) -> AsyncIterator[None]:
        """Somebody grants whatever is asked for, a little later."""
        informer = Informer(
            self.server,
            NodeNetworkConfig,
            runtime=Runtime(
                clock=self.clock, randomness=seeded_randomness(3), log=make_logger(io.StringIO(), self.clock)
            ),
        )
        asked = Wakeup(self.clock)

        def notice(old: NodeNetworkConfig | None, new: NodeNetworkConfig | None) -> None:
            if new and (old is None or old.metadata.generation != new.metadata.generation):
                asked.wake()

        async def serve() -> None:
            while True:
                await asked.wait()
                await asyncio.sleep(0.05)
                try:
                    await self.grant()
                except (Conflict, NotFound):
                    asked.wake()
                    await asyncio.sleep(1)

        informer.add_handler(notice)
        tasks = [asyncio.create_task(informer.run()), asyncio.create_task(serve())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def edit_request(self, count: int) -> None:
        """Somebody changes the request by hand, and tries again when another write came between."""
        while True:
            config = await self.config()
            spec = structs.replace(config.spec, requested_ip_count=count)
            try:
                await self.server.replace(structs.replace(config, spec=spec), manager="kubectl")
            except Conflict:
                continue
            return

    async def annotate(self, name: str, text: str | None) -> None:
        """Somebody sets an annotation of the NodeNetworkConfig by hand, or takes it away."""
        config = await self.config()
        annotations = {key: value for key, value in config.metadata.annotations.items() if key != name}
        if text is not None:
            annotations[name] = text
        metadata = structs.replace(config.metadata, annotations=annotations)
        await self.server.replace(structs.replace(config, metadata=metadata), manager="kubectl")

    # The subnet

    async def make_subnet(self, name: str = SUBNET, **status: Any) -> None:
        """There is a ClusterSubnet."""
        await self.make_subnet_by_hand(name)
        await self.set_subnet(name, **status)

    async def set_subnet(
        self,
        name: str = SUBNET,
        *,
        batch: int = 16,
        buffer: float = 0.5,
        top: int | None = None,
        **status: Any,
    ) -> None:
        """These parameters are in force now."""
        subnet = await self.server.get(ClusterSubnet, name, SYSTEM_NAMESPACE)
        scaler = ScalerInForce(batch=batch, buffer=buffer, top=top)
        new = structs.replace(subnet, status=ClusterSubnetStatus(scaler=scaler, **status))
        await self.server.replace_status(new, manager=MANAGER)

    async def make_subnet_by_hand(self, name: str = SUBNET) -> None:
        """There is a ClusterSubnet, and nobody has written its status."""
        subnet = ClusterSubnet(metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE))
        await self.server.create(subnet, manager="kubectl")

    async def clear_subnet(self, name: str = SUBNET) -> None:
        """Somebody empties the ClusterSubnet's status."""
        subnet = await self.server.get(ClusterSubnet, name, SYSTEM_NAMESPACE)
        new = structs.replace(subnet, status=ClusterSubnetStatus())
        await self.server.replace_status(new, manager=MANAGER)

    async def drop_subnet(self, name: str = SUBNET) -> None:
        await self.server.delete(ClusterSubnet, name, SYSTEM_NAMESPACE)

    async def set_state(self, *, exhausted: bool, name: str = SUBNET) -> None:
        """A ClusterSubnetState says whether the subnet is exhausted."""
        states = await self.server.list(ClusterSubnetState, SYSTEM_NAMESPACE, fields=f"metadata.name={name}")
        if states.items:
            state = states.items[0]
        else:
            state = ClusterSubnetState(metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE))
            state = await self.server.create(state, manager=MANAGER)
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp="2026-01-01T00:00:00Z")
        await self.server.replace_status(structs.replace(state, status=status), manager=MANAGER)

    # Scheduler and kubelet

    async def schedule(self, name: str, *, node: str = NODE, **more: Any) -> Pod:
        """A pod is bound to the node."""
        annotations = {CONFIG_HASH_ANNOTATION: more.pop("config_hash")} if "config_hash" in more else {}
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace="default", annotations=annotations),
            spec=PodSpec(node_name=node, **more),
        )
        return await self.server.create(pod, manager=MANAGER)

    async def schedule_many(self, count: int, prefix: str = "pod") -> list[Pod]:
        return [await self.schedule(f"{prefix}-{number}") for number in range(count)]

    async def report(
        self, pod: Pod, phase: PodPhase = PodPhase.RUNNING, addresses: Sequence[str] = ()
    ) -> Pod:
        """The kubelet writes the pod's status."""
        there = await self.server.get(Pod, pod.metadata.name, pod.metadata.namespace)
        status = PodStatus(phase=phase, pod_ips=[PodIP(ip=ip) for ip in addresses])
        return await self.server.replace_status(structs.replace(there, status=status), manager=MANAGER)

    async def mark_deleted(self, pod: Pod) -> None:
        """Somebody wants the pod to go; it stays until its containers have ended."""
        await self.server.delete(Pod, pod.metadata.name, pod.metadata.namespace)

    async def remove(self, pod: Pod) -> None:
        """The pod is gone from the cluster."""
        await self.report(pod, PodPhase.SUCCEEDED)
        await self.server.delete(Pod, pod.metadata.name, pod.metadata.namespace)


def container(
    container_id: str, *, subnet: str = SUBNET, addresses: Sequence[IPAssignment] = (), family: int = 4
) -> NetworkContainer:
    """A network container with its primary address."""
    shared: dict[str, Any] = {"id": container_id, "subnet_name": subnet, "ip_assignments": list(addresses)}
    if family == 6:
        return NetworkContainer(
            primary_ipv6="fd00::ffff",
            subnet_address_space_v6="fd00::/64",
            default_gateway_v6="fd00::fffe",
            **shared,
        )
    return NetworkContainer(
        primary_ip="10.0.255.254", subnet_address_space="10.0.0.0/16", default_gateway="10.0.0.1", **shared
    )


def owner(sandbox: str, pod: Pod | None = None) -> Owner:
    """A sandbox's interface, as the runtime tells of it."""
    if pod is None:
        return Owner(sandbox, "eth0", network="net")
    metadata = pod.metadata
    return Owner(sandbox, "eth0", metadata.uid, metadata.namespace, metadata.name, "net")


def ips(given: Sequence[PodAddress]) -> tuple[str, ...]:
    return tuple(each.ip for each in given)
