"""What `podtide top` shows, worst first: computed from the cluster's objects, without I/O."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from podtide.agent.pool.pods import shown_addresses
from podtide.allocator.subnets import Subnet
from podtide.cli.observed.network import ObservedNetwork
from podtide.cli.observed.node import ObservedNode
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.node_network_config import NetworkContainer


class ReservedBy(StrEnum):
    """The source of the number of reserved addresses."""

    ALLOCATOR = "allocator"
    """The allocator, now."""
    CLUSTER_SUBNET = "ClusterSubnet"
    """The ClusterSubnet: at most half a minute old, while the allocator answers the request controller."""
    NODES = "nodes"
    """What this cluster's nodes show to hold, if that is more than the ClusterSubnet says."""


class CidrLine(Struct, frozen=True, kw_only=True):
    """One range of a subnet."""

    cidr: str
    gateway: str
    draining: bool


class SubnetLine(Struct, frozen=True, kw_only=True):
    """One subnet. None is what no object states: only a ClusterSubnet has numbers."""

    name: str
    cidr: str
    capacity: int | None = None
    reserved: int | None = None
    reserved_by: ReservedBy | None = None
    """The source of `reserved`. What nodes show to hold is a lower bound."""
    free: int | None = None
    batch: int | None = None
    buffer: float | None = None
    exhausted: bool = False
    starved: bool = False
    nodes: int
    owed: int
    cidrs: tuple[CidrLine, ...] = ()
    """Every range of the subnet, as far as its ClusterSubnet says."""

    @property
    def badness(self) -> tuple[bool, bool, float, int]:
        """The sort key: higher is worse."""
        fullness = (self.reserved or 0) / self.capacity if self.capacity else 0.0
        return self.starved, self.exhausted, fullness, self.owed


class NodeLine(Struct, frozen=True, kw_only=True):
    """One node. All counts are over its containers, except `requested`, which counts for each."""

    name: str
    subnets: tuple[str, ...]
    requested: int
    held: int
    free: int
    """Held, not given back, and used by no pod."""
    pods_with_address: int
    pods_without_address: int
    owed: int
    secondary: int = 0
    """Addresses of secondary networks that pods hold in its slices."""

    @property
    def badness(self) -> tuple[int, int, int]:
        """The sort key: higher is worse."""
        return self.owed, self.pods_without_address, -self.free


class NetworkLine(Struct, frozen=True, kw_only=True):
    """One secondary network, over all its pools."""

    name: str
    ranges: tuple[str, ...]
    capacity: int
    """How many addresses pods could have of the pools there are."""
    held: int
    quarantined: int
    """Of those, in slices whose node is deleted."""
    slices: int | None = None
    """How many slices belong to nodes; None where the network is not cut."""
    slices_total: int | None = None

    @property
    def badness(self) -> tuple[float, int]:
        """The sort key: higher is worse."""
        return self.held / self.capacity if self.capacity else 0.0, self.quarantined


class NamespaceLine(Struct, frozen=True, kw_only=True):
    """The pods of one namespace, on the nodes that are shown."""

    name: str
    pods_with_address: int
    pods_without_address: int
    addresses: int
    """Of node pools."""
    secondary: int
    """Of secondary networks."""
    nodes: int

    @property
    def badness(self) -> tuple[int, int]:
        """The sort key: higher is worse."""
        return self.pods_without_address, self.addresses + self.secondary


class Overview(Struct, frozen=True):
    """All subnets, nodes, secondary networks and namespaces, worst first."""

    subnets: tuple[SubnetLine, ...]
    nodes: tuple[NodeLine, ...]
    networks: tuple[NetworkLine, ...] = ()
    namespaces: tuple[NamespaceLine, ...] = ()


L = TypeVar("L", SubnetLine, NodeLine, NetworkLine, NamespaceLine)


class TopReading(Struct, frozen=True):
    """What an overview is computed from: one look at a cluster, and at its allocator if that was asked."""

    nodes: Iterable[ObservedNode]
    subnets: Iterable[ClusterSubnet]
    states: Iterable[ClusterSubnetState]
    at_allocator: Iterable[Subnet] = ()
    networks: Iterable[ObservedNetwork] = ()


def overlook(
    reading: TopReading,
    *,
    has_node: Callable[[ObservedNode], bool] = lambda _node: True,
    has_subnet: Callable[[str], bool] = lambda _name: True,
) -> Overview:
    """The overview of a cluster; with the allocator's numbers, if it was asked.

    What is left out by `has_node` and `has_subnet` still counts in the numbers of subnets, which are of all nodes.
    """
    observed, secondary = tuple(reading.nodes), tuple(reading.networks)
    in_subnet: dict[str, list[tuple[ObservedNode, NetworkContainer]]] = defaultdict(list)
    for node in observed:
        for container in node.containers:
            in_subnet[container.subnet_name].append((node, container))
    lines = sorted(
        _subnet_lines(
            in_subnet,
            {subnet.metadata.name: subnet for subnet in reading.subnets},
            reading.states,
            tuple(reading.at_allocator),
        ),
        key=lambda line: line.name,
    )
    in_slices = Counter[str]()
    for pool in (pool for network in secondary for pool in network.pools):
        in_slices[pool.node] += len(pool.holders)
    shown = [node for node in observed if has_node(node)]
    return Overview(
        subnets=_worst_first(line for line in lines if has_subnet(line.name)),
        nodes=_worst_first(_node_line(node, in_slices[node.name]) for node in shown),
        networks=_worst_first(map(_network_line, secondary)),
        namespaces=_worst_first(_namespace_lines(shown, secondary)),
    )


def _worst_first(lines: Iterable[L]) -> tuple[L, ...]:
    by_name = sorted(lines, key=lambda line: line.name)
    return tuple(sorted(by_name, key=lambda line: line.badness, reverse=True))


def _network_line(network: ObservedNetwork) -> NetworkLine:
    sliced = [each for each in network.ranges if each.total is not None]
    return NetworkLine(
        name=network.name,
        ranges=tuple(each.cidr for each in network.ranges),
        capacity=network.capacity,
        held=network.held,
        quarantined=network.quarantined,
        slices=sum(len(each.slices) for each in sliced) if sliced else None,
        slices_total=sum(each.total or 0 for each in sliced) if sliced else None,
    )


def _namespace_lines(
    nodes: Iterable[ObservedNode], networks: Iterable[ObservedNetwork]
) -> Iterator[NamespaceLine]:
    served, waiting, addresses = Counter[str](), Counter[str](), Counter[str]()
    on_nodes: dict[str, set[str]] = defaultdict(set)
    pods: dict[str, str] = {}
    for node in nodes:
        granted = {entry.ip for container in node.containers for entry in container.ip_assignments}
        for pod in node.served:
            served[pod.metadata.namespace] += 1
            addresses[pod.metadata.namespace] += len(granted.intersection(shown_addresses(pod)))
        for pod in node.waiting:
            waiting[pod.metadata.namespace] += 1
        for pod in (*node.served, *node.waiting):
            on_nodes[pod.metadata.namespace].add(node.name)
            pods[str(pod.key)] = pod.metadata.namespace
    held = Counter(
        pods[holder.podref]
        for network in networks
        for pool in network.pools
        for holder in pool.holders.values()
        if holder.podref in pods
    )
    for name, there in on_nodes.items():
        yield NamespaceLine(
            name=name,
            pods_with_address=served[name],
            pods_without_address=waiting[name],
            addresses=addresses[name],
            secondary=held[name],
            nodes=len(there),
        )


def _subnet_lines(
    in_subnet: dict[str, list[tuple[ObservedNode, NetworkContainer]]],
    subnets: dict[str, ClusterSubnet],
    states: Iterable[ClusterSubnetState],
    at_allocator: tuple[Subnet, ...],
) -> Iterator[SubnetLine]:
    exhausted = {state.metadata.name for state in states if state.status and state.status.exhausted}
    for name in {*in_subnet, *subnets, *exhausted}:
        holders = in_subnet[name]
        owed = sum(node.owed_in(container) for node, container in holders)
        subnet = subnets.get(name)
        asked = _asked(name, holders, at_allocator)
        if subnet is None or not subnet.is_judged:
            cidr = next((container.subnet_address_space for _node, container in holders), "")
            yield SubnetLine(
                name=name,
                cidr=cidr,
                capacity=asked.capacity if asked else None,
                reserved=asked.reserved if asked else None,
                reserved_by=ReservedBy.ALLOCATOR if asked else None,
                free=asked.capacity - asked.reserved if asked else None,
                exhausted=name in exhausted,
                nodes=len(holders),
                owed=owed,
            )
            continue
        status = subnet.status
        capacity = asked.capacity if asked else status.capacity
        reserved, reserved_by = _reserved(status.reserved, holders, asked)
        yield SubnetLine(
            name=name,
            cidr=status.cidr,
            capacity=capacity,
            reserved=reserved,
            reserved_by=reserved_by,
            free=max(0, capacity - reserved),
            batch=status.scaler.batch if status.scaler else None,
            buffer=status.scaler.buffer if status.scaler else None,
            exhausted=status.exhausted,
            starved=status.starved,
            nodes=len(holders),
            owed=owed,
            cidrs=tuple(
                CidrLine(cidr=each.cidr, gateway=each.gateway, draining=each.draining)
                for each in status.cidrs
            ),
        )


def _reserved(
    told: int, holders: list[tuple[ObservedNode, NetworkContainer]], asked: Subnet | None
) -> tuple[int, ReservedBy]:
    """R and its source; never less than what nodes hold."""
    if asked is not None:
        return asked.reserved, ReservedBy.ALLOCATOR
    shown = sum(1 + len(container.ip_assignments) for _node, container in holders)
    return (shown, ReservedBy.NODES) if shown > told else (told, ReservedBy.CLUSTER_SUBNET)


def _asked(
    name: str, holders: list[tuple[ObservedNode, NetworkContainer]], at_allocator: tuple[Subnet, ...]
) -> Subnet | None:
    """The allocator's subnet of that name in the network of the containers; without containers, if the name is unique."""
    networks = {container.vnet_id for _node, container in holders}
    called = [subnet for subnet in at_allocator if subnet.name == name]
    ours = [subnet for subnet in called if subnet.network in networks] if networks else called
    return ours[0] if len(ours) == 1 else None


def _node_line(node: ObservedNode, secondary: int) -> NodeLine:
    kept = {
        entry.ip
        for container in node.containers
        for entry in container.ip_assignments
        if entry.name not in node.named
    }
    return NodeLine(
        name=node.name,
        subnets=tuple(container.subnet_name for container in node.containers),
        requested=node.requested,
        held=node.held,
        free=len(kept - node.addresses_in_use),
        pods_with_address=len(node.served),
        pods_without_address=len(node.waiting),
        owed=node.owed,
        secondary=secondary,
    )
