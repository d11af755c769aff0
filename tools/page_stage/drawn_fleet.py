"""Nodes by the thousand, drawn as the objects they would have: no programs are behind them, so they cost what objects cost."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from page_stage.loop_thread import LoopThread
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.controller.grant_condition import GRANTED
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import (
    ClusterSubnet,
    ClusterSubnetStatus,
    ScalerInForce,
    SubnetCidr,
    ThresholdsInForce,
)
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.statement_annotation import render
from podtide.runtime.listening import ListenAddress
from podtide.runtime.randomness import seeded_randomness

MANAGER = "drawn"
THEN = "2026-11-05T12:00:00Z"
_BATCH = 16
_BUFFER = Fraction(1, 2)
_SPREAD = 25
"""Nodes have so many pods more or less than the average."""
_GONE = 0.06
"""The part of places from which a node has left: a map without gaps is not one of a cluster that lived."""
_RELEASING = 0.05
"""The part of nodes that give addresses back."""
_KEPT_BACK = 3
"""The network's own address, the gateway and the last one."""


class DrawnSubnet(Struct, frozen=True):
    """A subnet, and how many nodes hold addresses of it."""

    name: str
    cidr: str
    nodes: int
    pods: int
    """On each node, on average."""


LARGE = (
    DrawnSubnet("east", "10.16.0.0/16", 1_250, 30),
    DrawnSubnet("north", "10.32.0.0/16", 1_250, 30),
    DrawnSubnet("south", "10.48.0.0/16", 1_250, 30),
    DrawnSubnet("west", "10.64.0.0/16", 1_250, 30),
)
"""5,000 nodes with 150,000 pods, in four subnets of /16."""


class DrawnFleet:
    """The cluster, served for as long as the context lasts. `changes` are made by `state_demand`."""

    def __init__(self, directory: Path, subnets: Sequence[DrawnSubnet]) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self._subnets = subnets
        self._thread = LoopThread(self._open())

    def __enter__(self) -> Self:
        self._thread.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.__exit__(kind, error, trace)

    def state_demand(self, node: str, pods: int) -> None:
        """Let a node say that it has so many pods, and ask for what they need."""
        self._thread.call(self._state(node, pods))

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[EmbeddedCluster]:
        cluster = EmbeddedCluster(kinds=SERVED_KINDS)
        try:
            for subnet in self._subnets:
                await _draw(cluster, subnet)
            async with serving(cluster.server, ListenAddress("127.0.0.1", 0)) as url:
                write_kubeconfig(self.kubeconfig, url)
                yield cluster
        finally:
            cluster.close()

    async def _state(self, node: str, pods: int) -> None:
        cluster = self._thread.opened
        config = await cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)
        statement = _statement(pods)
        annotations = {**config.metadata.annotations, STATEMENT_ANNOTATION: render(statement)}
        spec = replace(config.spec, requested_ip_count=statement.request)
        metadata = replace(config.metadata, annotations=annotations)
        await cluster.replace(replace(config, metadata=metadata, spec=spec), manager=MANAGER)


def _statement(pods: int) -> Statement:
    scaler = Scaler(_BATCH, _BUFFER, DEFAULT_MAX_IPS)
    return Statement(
        demand=pods,
        batch=_BATCH,
        buffer=_BUFFER,
        max_ips=DEFAULT_MAX_IPS,
        primaries=1,
        request=request_at(pods, scaler, 1),
        number=1,
        top=_BATCH,
    )


async def _draw(cluster: EmbeddedCluster, subnet: DrawnSubnet) -> None:
    chance = seeded_randomness(f"drawn {subnet.name}")
    network = IPv4Network(subnet.cidr)
    gateway = network.network_address + 1
    following = int(gateway) + 1
    reserved = 0
    for number in range(subnet.nodes):
        statement = _statement(subnet.pods + chance.randint(-_SPREAD, _SPREAD))
        name = f"{subnet.name}-{number:04}"
        if chance.random() < _GONE:
            following += statement.request + 1  # a node was here, and has left
        releasing = chance.randint(2, 8) if chance.random() < _RELEASING else 0
        await _draw_node(cluster, name, subnet, statement, IPv4Address(following), releasing=releasing)
        following += statement.request + releasing + 1
        reserved += statement.request + releasing + 1
    made = await cluster.create(
        ClusterSubnet(metadata=ObjectMeta(name=subnet.name, namespace=SYSTEM_NAMESPACE)), manager=MANAGER
    )
    status = ClusterSubnetStatus(
        cidr=subnet.cidr,
        cidrs=[SubnetCidr(cidr=subnet.cidr, gateway=str(gateway))],
        capacity=network.num_addresses - _KEPT_BACK,
        reserved=reserved,
        scaler=ScalerInForce(batch=_BATCH, buffer=float(_BUFFER), top=_BATCH),
        thresholds=ThresholdsInForce(lower=0.8, upper=0.9),
    )
    await cluster.replace_status(replace(made, status=status), manager=MANAGER)


async def _draw_node(  # noqa: PLR0913 - all that its objects say
    cluster: EmbeddedCluster,
    name: str,
    subnet: DrawnSubnet,
    statement: Statement,
    primary: IPv4Address,
    *,
    releasing: int,
) -> None:
    node = await cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)
    made = await cluster.create(
        NodeNetworkConfig(
            metadata=ObjectMeta(
                name=name, namespace=SYSTEM_NAMESPACE, annotations={STATEMENT_ANNOTATION: render(statement)}
            ),
            spec=NodeNetworkConfigSpec(
                requested_ip_count=statement.request,
                ips_not_in_use=[
                    f"{name}-{number}"
                    for number in range(statement.request + 1, statement.request + releasing + 1)
                ],
            ),
        ),
        manager=MANAGER,
    )
    held = NetworkContainer(
        id=node.metadata.uid,
        subnet_name=subnet.name,
        vnet_id="drawn",
        primary_ip=str(primary),
        subnet_address_space=subnet.cidr,
        ip_assignments=[
            IPAssignment(name=f"{name}-{number}", ip=str(primary + number))
            for number in range(1, statement.request + releasing + 1)
        ],
        version=1,
    )
    granted = Condition(
        type=GRANTED,
        status=ConditionStatus.TRUE,
        last_transition_time=THEN,
        reason="Complete",
        message=f"subnet {subnet.name}: {len(held.ip_assignments)} addresses held, {statement.request} asked for",
        observed_generation=made.metadata.generation,
    )
    status = NodeNetworkConfigStatus(
        assigned_ip_count=len(held.ip_assignments),
        status=ConfigStatus.UPDATED,
        network_containers=[held],
        conditions=[granted],
    )
    await cluster.replace_status(replace(made, status=status), manager=MANAGER)
