"""A cluster drawn by hand: nodes, what they asked for and were given, pods and subnets, each in one line of a test."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.controller.program import LEASE
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerInForce, SubnetCidr
from podtide.resources.cluster_subnet_state import ClusterSubnetState, ClusterSubnetStateStatus
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.pod import Pod, PodContainer, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime.listening import ListenAddress

MANAGER = "test"
THEN = "2026-11-05T12:00:00Z"


class DrawnCluster:
    """An embedded cluster, and short ways to put objects into it."""

    def __init__(self, cluster: EmbeddedCluster | None = None) -> None:
        self.cluster = cluster or EmbeddedCluster(kinds=SERVED_KINDS)

    async def node(self, name: str) -> Node:
        """A bare Node."""
        return await self.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)

    async def config(
        self,
        name: str,
        *,
        requested: int = 0,
        granted: Sequence[str] = (),
        named: Sequence[str] = (),
        subnet: str = "pods",
        short: bool = False,
        container: bool = True,
        owner: Node | None = None,
    ) -> NodeNetworkConfig:
        """A Node with its NodeNetworkConfig. An address is named after itself, dots as dashes."""
        node = await self.node(name)
        owner = owner or node
        owner_reference = OwnerReference(
            api_version="v1",
            kind="Node",
            name=owner.metadata.name,
            uid=owner.metadata.uid,
            controller=True,
        )
        made = await self.cluster.create(
            NodeNetworkConfig(
                metadata=ObjectMeta(
                    name=name, namespace=SYSTEM_NAMESPACE, owner_references=[owner_reference]
                ),
                spec=NodeNetworkConfigSpec(
                    requested_ip_count=requested, ips_not_in_use=[name_of(ip) for ip in named]
                ),
            ),
            manager=MANAGER,
        )
        held = NetworkContainer(
            id=owner.metadata.uid,
            subnet_name=subnet,
            vnet_id="blue",
            primary_ip=f"10.9.0.{len(name)}",
            subnet_address_space="10.1.0.0/24",
            ip_assignments=[IPAssignment(name=name_of(ip), ip=ip) for ip in granted],
            version=3,
        )
        granted_condition = Condition(
            type="Granted",
            status=ConditionStatus.FALSE if short else ConditionStatus.TRUE,
            last_transition_time=THEN,
            reason="SubnetShort" if short else "Complete",
            message=f"subnet {subnet}: {len(granted)} addresses held, {requested} asked for",
            observed_generation=made.metadata.generation,
        )
        status = NodeNetworkConfigStatus(
            assigned_ip_count=len(granted),
            status=ConfigStatus.UPDATED,
            network_containers=[held] if container else [],
            conditions=[granted_condition],
        )
        return await self.cluster.replace_status(replace(made, status=status), manager=MANAGER)

    async def pod(
        self,
        name: str,
        node: str = "",
        ip: str = "",
        *,
        phase: PodPhase | None = None,
        host_network: bool = False,
        namespace: str = "default",
    ) -> Pod:
        """A pod; with an address it runs."""
        spec = PodSpec(
            node_name=node, host_network=host_network, containers=[PodContainer(name="main", image="none")]
        )
        made = await self.cluster.create(
            Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec), manager=MANAGER
        )
        if not ip and phase is None:
            return made
        status = PodStatus(phase=phase or PodPhase.RUNNING, pod_ip=ip, pod_ips=[PodIP(ip=ip)] if ip else [])
        return await self.cluster.replace_status(replace(made, status=status), manager=MANAGER)

    async def subnet(
        self,
        name: str = "pods",
        *,
        capacity: int = 253,
        reserved: int = 100,
        batch: int = 16,
        buffer: float = 0.5,
        exhausted: bool = False,
        starved: bool = False,
        cidrs: Sequence[SubnetCidr] = (),
    ) -> ClusterSubnet:
        """A ClusterSubnet."""
        made = await self.cluster.create(
            ClusterSubnet(metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)), manager=MANAGER
        )
        status = ClusterSubnetStatus(
            cidr="10.1.0.0/24",
            cidrs=list(cidrs),
            capacity=capacity,
            reserved=reserved,
            exhausted=exhausted,
            starved=starved,
            scaler=ScalerInForce(batch=batch, buffer=buffer),
        )
        return await self.cluster.replace_status(replace(made, status=status), manager=MANAGER)

    async def lead(self, *, holder: str = "a-controller", renewed: str = THEN) -> Lease:
        """The controllers' Lease, for 15 seconds."""
        spec = LeaseSpec(
            holder_identity=holder, lease_duration_seconds=15, acquire_time=renewed, renew_time=renewed
        )
        place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
        return await self.cluster.create(Lease(metadata=place, spec=spec), manager=MANAGER)

    async def say(self, subnet: ClusterSubnet, condition: Condition) -> None:
        """One more condition of a ClusterSubnet."""
        status = replace(subnet.status, conditions=[*subnet.status.conditions, condition])
        await self.cluster.replace_status(replace(subnet, status=status), manager=MANAGER)

    async def subnet_state(self, name: str = "pods", *, exhausted: bool) -> ClusterSubnetState:
        """A ClusterSubnetState."""
        made = await self.cluster.create(
            ClusterSubnetState(metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)), manager=MANAGER
        )
        status = ClusterSubnetStateStatus(exhausted=exhausted, timestamp=THEN)
        return await self.cluster.replace_status(replace(made, status=status), manager=MANAGER)


def name_of(ip: str) -> str:
    """The name an address was granted by."""
    return f"grant-{ip.replace('.', '-')}"


def addresses(count: int, first: int = 10) -> list[str]:
    """So many addresses in a row."""
    return [f"10.1.0.{number}" for number in range(first, first + count)]


@contextmanager
def served(draw: Callable[[DrawnCluster], Awaitable[object]], directory: Path) -> Iterator[Path]:
    """The kubeconfig of a cluster that was drawn, for as long as the context lasts."""
    kubeconfig = directory / "kubeconfig"
    started, stopped = threading.Event(), threading.Event()

    async def serve() -> None:
        drawn = DrawnCluster()
        await draw(drawn)
        async with serving(drawn.cluster.server, ListenAddress("127.0.0.1", 0)) as url:
            write_kubeconfig(kubeconfig, url)
            started.set()
            await asyncio.to_thread(stopped.wait)
        drawn.cluster.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(20)
        yield kubeconfig
    finally:
        stopped.set()
        thread.join()
