"""What `podtide ip` reads: nodes, pods, subnets, secondary networks, Events, and the allocator if it is named."""

from msgspec import Struct

from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import Quarantined
from podtide.allocator.subnets import Subnet
from podtide.cli.observed.network import NetworkObjects, read_network_objects
from podtide.cli.observed.node import ObservedNode, observe_nodes
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster, Forbidden
from podtide.core.ranges import IPAddress, parse_network
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.event import Event
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod


class SubnetRecords(Struct, frozen=True, kw_only=True):
    """What an allocator has recorded of an address, for one subnet that it is in."""

    subnet: Subnet
    container: AllocatedContainer | None = None
    """The container that has it, of whichever cluster."""
    quarantined: Quarantined | None = None
    """The removed container that left it."""


class AddressFacts(Struct, frozen=True, kw_only=True):
    """One read of everything that can tell of an address."""

    address: IPAddress
    nodes: tuple[ObservedNode, ...]
    pods: tuple[Pod, ...]
    subnets: tuple[ClusterSubnet, ...]
    node_objects: tuple[Node, ...]
    networks: NetworkObjects | None
    """None if the credential may not read them."""
    events: tuple[Event, ...]
    """Those that name the address, oldest first."""
    records: tuple[SubnetRecords, ...] | None
    """For each subnet that has it; None if no allocator was asked."""
    now: float


async def gather_address_facts(
    cluster: Cluster, allocator: Allocator | None, address: IPAddress, namespace: str, now: float
) -> AddressFacts:
    """Read everything once: first what uses addresses, then what grants them."""
    pods = await list_all(cluster, Pod)
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    return AddressFacts(
        address=address,
        nodes=observe_nodes(configs, pods),
        pods=tuple(pods),
        subnets=tuple(await list_all(cluster, ClusterSubnet, SYSTEM_NAMESPACE)),
        node_objects=tuple(await list_all(cluster, Node)),
        networks=await read_network_objects(cluster, namespace),
        events=await _events(cluster, str(address)),
        records=await _records(allocator, address) if allocator else None,
        now=now,
    )


async def _events(cluster: Cluster, address: str) -> tuple[Event, ...]:
    try:
        found = await list_all(cluster, Event)
    except Forbidden:
        return ()
    named = [event for event in found if _names(event.message, address)]
    return tuple(sorted(named, key=lambda event: event.last_timestamp or event.first_timestamp or ""))


def _names(message: str, address: str) -> bool:
    """Whether the address stands in the text as a whole: 10.1.0.1 does not stand in 10.1.0.10."""
    words = message.replace(",", " ").replace(";", " ").replace("(", " ").replace(")", " ").split()
    return any(word.rstrip(".:") == address for word in words)


async def _records(allocator: Allocator, address: IPAddress) -> tuple[SubnetRecords, ...]:
    around = [
        subnet
        for subnet in await allocator.list_subnets()
        if any(address in parse_network(cidr) for cidr in subnet.cidrs)
    ]
    return tuple([await _record(allocator, subnet, str(address)) for subnet in around])


async def _record(allocator: Allocator, subnet: Subnet, address: str) -> SubnetRecords:
    more, is_last = "", False
    while not is_last:
        page = await allocator.list_containers(network=subnet.network, subnet=subnet.name, more=more)
        for container in page.items:
            if address == container.primary or any(each.ip == address for each in container.addresses):
                return SubnetRecords(subnet=subnet, container=container)
        more, is_last = page.more, not page.more
    more, is_last = "", not subnet.quarantined
    while not is_last:
        left = await allocator.quarantined(more=more)
        for each in left.items:
            if (each.network, each.subnet) == (subnet.network, subnet.name) and address in each.addresses:
                return SubnetRecords(subnet=subnet, quarantined=each)
        more, is_last = left.more, not left.more
    return SubnetRecords(subnet=subnet)
