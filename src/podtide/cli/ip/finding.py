"""What an address is to each subnet and each secondary network that has it. No I/O.

A node's pool is read from its NodeNetworkConfig and its pods, as `podtide check` does, because the agent's own journal is
on its node. Without the allocator it cannot be known of an address that no node of this cluster shows whether it is
free: another cluster may have it, or it is in quarantine. Then the state says so, instead of a guess.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podtide.agent.pool.pods import shown_addresses
from podtide.cli.ip.address_state import AddressFinding, AddressState, is_address, is_within
from podtide.cli.ip.facts import AddressFacts, SubnetRecords
from podtide.cli.ip.network_finding import find_in_networks
from podtide.cli.observed.node import ObservedNode
from podtide.core.ranges import IPAddress, parse_network
from podtide.core.subnet.layout import SubnetLayout
from podtide.networks.pods import has_ended
from podtide.resources.node_network_config import NetworkContainer
from podtide.resources.pod import Pod
from podtide.resources.timestamps import to_time

_ONLY_THE_ALLOCATOR_KNOWS = (
    "no node of this cluster shows it: it is free, kept back, in quarantine or another cluster's, and only the allocator "
    "knows; name it with --allocator or --database"
)


def find_address(facts: AddressFacts) -> tuple[AddressFinding, ...]:
    """Everything that is known of the address, by subnet and network; empty if no known subnet or network has it."""
    found = [*_in_node_pools(facts), *find_in_networks(facts)]
    if not found:
        found = [*_beside_podtide(facts)]
    return tuple(found)


# Node pools


def _in_node_pools(facts: AddressFacts) -> Iterator[AddressFinding]:
    shown = list(_shown(facts))
    if facts.records is not None:
        for record in facts.records:
            yield _recorded(record, shown, facts)
        recorded = {(record.subnet.network, record.subnet.name) for record in facts.records}
        yield from (each for each in shown if (each.network, each.subnet) not in recorded)
        return
    yield from shown
    yield from _not_shown(facts, {each.subnet for each in shown})


def _shown(facts: AddressFacts) -> Iterator[AddressFinding]:
    """The address as NodeNetworkConfigs show it."""
    for node in facts.nodes:
        for container in node.containers:
            if is_address(container.primary_ip, facts.address) or is_address(
                container.primary_ipv6, facts.address
            ):
                yield _of_container(
                    node,
                    container,
                    AddressState.PRIMARY,
                    f"the primary address of node {node.name}, which no pod gets",
                )
            for entry in container.ip_assignments:
                if is_address(entry.ip, facts.address):
                    yield _assigned(node, container, entry.name, facts.address)


def _assigned(
    node: ObservedNode, container: NetworkContainer, name: str, address: IPAddress
) -> AddressFinding:
    pod = next((each for each in node.served if _shows(each, address)), None)
    if name in node.named:
        words = f"node {node.name} gives it back: it is free once the request controller has released it"
        if pod is not None:
            words += f", but pod {pod.key} shows it, which `podtide check` reports"
        return _of_container(node, container, AddressState.RELEASING, words, name=name, pod=pod)
    if pod is not None:
        return _of_container(
            node,
            container,
            AddressState.ON_POD,
            f"pod {pod.key} on node {node.name} has it",
            name=name,
            pod=pod,
        )
    words = f"node {node.name} holds it for its next pods, and no pod shows it"
    return _of_container(node, container, AddressState.IDLE, words, name=name)


def _of_container(  # noqa: PLR0913 - where it is, what it is, and who has it
    node: ObservedNode,
    container: NetworkContainer,
    state: AddressState,
    words: str,
    *,
    name: str = "",
    pod: Pod | None = None,
) -> AddressFinding:
    return AddressFinding(
        network=container.vnet_id,
        subnet=container.subnet_name,
        cidr=container.subnet_address_space or container.subnet_address_space_v6,
        state=state,
        words=words,
        node=node.name,
        pod=str(pod.key) if pod else "",
        grant=name,
        container=container.id,
        since=(pod.metadata.creation_timestamp or "") if pod else "",
    )


def _recorded(record: SubnetRecords, shown: Iterable[AddressFinding], facts: AddressFacts) -> AddressFinding:
    """The address by the allocator's records, with what objects of this cluster add."""
    subnet, address = record.subnet, str(facts.address)
    cidr = next(each for each in subnet.cidrs if facts.address in parse_network(each))
    if record.container is not None:
        container = record.container
        for each in shown:
            if each.node == container.node and each.subnet == subnet.name:
                return _with_cluster(each, container.cluster, subnet.network)
        is_primary = address == container.primary
        whose = f"node {container.node} of cluster {container.cluster}"
        return AddressFinding(
            network=subnet.network,
            subnet=subnet.name,
            cidr=cidr,
            state=AddressState.PRIMARY if is_primary else AddressState.HELD,
            words=f"the primary address of {whose}"
            if is_primary
            else f"{whose} holds it; no NodeNetworkConfig of this cluster shows it, so ask there which pod has it",
            cluster=container.cluster,
            node=container.node,
            grant=next((each.name for each in container.addresses if each.ip == address), ""),
            container=container.id,
        )
    if record.quarantined is not None:
        left = record.quarantined
        until = to_time(left.until)
        ends = (
            f"until {until} at least"
            if left.seconds_left
            else f"since {until} only until it is confirmed free"
        )
        return AddressFinding(
            network=subnet.network,
            subnet=subnet.name,
            cidr=cidr,
            state=AddressState.QUARANTINED,
            words=f"node {left.node} of cluster {left.cluster} had it and is removed: it is kept from others {ends}",
            cluster=left.cluster,
            node=left.node,
            container=left.container,
            until=until,
        )
    state, words = _unreserved(record, cidr, address)
    return AddressFinding(network=subnet.network, subnet=subnet.name, cidr=cidr, state=state, words=words)


def _unreserved(record: SubnetRecords, cidr: str, address: str) -> tuple[AddressState, str]:
    subnet = record.subnet
    layout = SubnetLayout(
        subnet.cidrs, subnet.gateways, subnet.keep_back, subnet.keep_back_first, draining=subnet.draining
    )
    if address in subnet.gateways:
        return AddressState.KEPT_BACK, f"the gateway of {cidr}, which is never given"
    if layout.place(address) is None:
        return (
            AddressState.KEPT_BACK,
            "never given: a first or last address, or one that the subnet keeps back",
        )
    if cidr in subnet.draining:
        return AddressState.DRAINING, f"not reserved, and {cidr} drains, so it is not given any more"
    return AddressState.FREE, "no node has it; it may cool down from its last holder, and is given last then"


def _with_cluster(finding: AddressFinding, cluster: str, network: str) -> AddressFinding:
    return replace(finding, cluster=cluster, network=network)


def _not_shown(facts: AddressFacts, named: set[str]) -> Iterator[AddressFinding]:
    """The address in subnets whose nodes do not show it, without an allocator to ask."""
    cidrs: dict[str, dict[str, str]] = {}
    networks: dict[str, str] = {}
    for node in facts.nodes:
        for each in node.containers:
            ranges = cidrs.setdefault(each.subnet_name, {})
            networks[each.subnet_name] = each.vnet_id
            for cidr, gateway in (
                (each.subnet_address_space, each.default_gateway),
                (each.subnet_address_space_v6, each.default_gateway_v6),
                *((one.cidr, one.gateway) for one in each.cidrs),
            ):
                ranges.setdefault(cidr, gateway)
    for subnet in facts.subnets:
        ranges = cidrs.setdefault(subnet.metadata.name, {})
        ranges.setdefault(subnet.status.cidr, "")
        ranges.update({each.cidr: each.gateway for each in subnet.status.cidrs})
    for name, ranges in sorted(cidrs.items()):
        around = next((cidr for cidr in ranges if is_within(facts.address, cidr)), None)
        if name not in named and around is not None:
            state, words = _guess(facts.address, around, ranges[around])
            yield AddressFinding(
                network=networks.get(name, ""), subnet=name, cidr=around, state=state, words=words
            )


def _guess(address: IPAddress, cidr: str, gateway: str) -> tuple[AddressState, str]:
    network = parse_network(cidr)
    if gateway and is_address(gateway, address):
        return AddressState.KEPT_BACK, f"the gateway of {cidr}, which is never given"
    if address in {network.network_address, network.broadcast_address}:
        return AddressState.KEPT_BACK, f"the first or last address of {cidr}, which is never given"
    return AddressState.UNKNOWN, _ONLY_THE_ALLOCATOR_KNOWS


# What is not podtide's


def _beside_podtide(facts: AddressFacts) -> Iterator[AddressFinding]:
    """Pods that show an address which no subnet and no network of podtide's has."""
    for pod in facts.pods:
        if pod.spec.host_network and not has_ended(pod) and shows_at_all(pod, facts.address):
            yield AddressFinding(
                network="",
                state=AddressState.HOST,
                words=f"node {pod.spec.node_name}'s own, by pod {pod.key} on the host's network: podtide did not give it",
                node=pod.spec.node_name,
            )
            return
    for pod in facts.pods:
        if _shows(pod, facts.address):
            yield AddressFinding(
                network="",
                state=AddressState.ON_POD,
                words=f"pod {pod.key} on node {pod.spec.node_name} shows it, and podtide did not give it",
                node=pod.spec.node_name,
                pod=str(pod.key),
                since=pod.metadata.creation_timestamp or "",
            )


def _shows(pod: Pod, address: IPAddress) -> bool:
    return any(is_address(ip, address) for ip in shown_addresses(pod))


def shows_at_all(pod: Pod, address: IPAddress) -> bool:
    """Whether its status has the address, also if it has ended or is on the host's network."""
    return any(
        is_address(ip, address) for ip in (pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips))
    )
