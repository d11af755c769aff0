"""A network container as a NodeNetworkConfig shows it: Azure CNS's fields, of which some exist once per family."""

from msgspec.structs import replace

from podtide.allocator.containers import AllocatedContainer
from podtide.resources.node import Node
from podtide.resources.node_network_config import CidrOfAddresses, IPAssignment, NetworkContainer


def show_container(container: AllocatedContainer, node: Node) -> NetworkContainer:
    """The container in the fields of a NodeNetworkConfig; the caller adds how the last request for it ended."""
    v6 = _is_v6(container.primary)
    shown = NetworkContainer(
        id=container.id,
        subnet_name=container.subnet,
        vnet_id=container.network,
        cidrs=_cidrs(container),
        ip_assignments=[IPAssignment(name=each.name, ip=each.ip) for each in container.addresses],
        version=container.version,
        node_ip=next((each for each in own_addresses(node) if _is_v6(each) == v6), ""),
    )
    primary, gateway, cidr = container.primary, container.gateway, container.cidr
    if v6:
        return replace(shown, primary_ipv6=primary, default_gateway_v6=gateway, subnet_address_space_v6=cidr)
    return replace(shown, primary_ip=primary, default_gateway=gateway, subnet_address_space=cidr)


def own_addresses(node: Node) -> tuple[str, ...]:
    """The machine's own addresses within the cluster."""
    return tuple(each.address for each in node.status.addresses if each.type == "InternalIP")


def _cidrs(container: AllocatedContainer) -> list[CidrOfAddresses]:
    """All ranges of the container, if it has several: Azure CNS's fields have room only for that of the primary address."""
    in_use = container.cidrs
    return [CidrOfAddresses(cidr=each.cidr, gateway=each.gateway) for each in in_use if len(in_use) > 1]


def _is_v6(address: str) -> bool:
    return ":" in address
