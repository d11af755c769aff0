"""A network container as a NodeNetworkConfig shows it: Azure CNS's fields, of which some exist once per family."""

from podtide.allocator.port import AllocatedContainer
from podtide.resources.node import Node
from podtide.resources.node_network_config import CidrOfAddresses, IPAssignment, NetworkContainer


def show_container(container: AllocatedContainer, node: Node) -> NetworkContainer:
    """The container in the fields of a NodeNetworkConfig; the caller adds how the last request for it ended."""
    if _is_v6(container.primary):
        return NetworkContainer(
            id=container.id,
            subnet_name=container.subnet,
            vnet_id=container.network,
            primary_ipv6=container.primary,
            default_gateway_v6=container.gateway,
            subnet_address_space_v6=container.cidr,
            cidrs=_cidrs(container),
            ip_assignments=_assignments(container),
            version=container.version,
            node_ip=_own_address(node, v6=True),
        )
    return NetworkContainer(
        id=container.id,
        subnet_name=container.subnet,
        vnet_id=container.network,
        primary_ip=container.primary,
        default_gateway=container.gateway,
        subnet_address_space=container.cidr,
        cidrs=_cidrs(container),
        ip_assignments=_assignments(container),
        version=container.version,
        node_ip=_own_address(node, v6=False),
    )


def own_addresses(node: Node) -> tuple[str, ...]:
    """The machine's own addresses within the cluster."""
    return tuple(each.address for each in node.status.addresses if each.type == "InternalIP")


def _cidrs(container: AllocatedContainer) -> list[CidrOfAddresses]:
    """All ranges of the container, if it has several: Azure CNS's fields have room only for that of the primary address."""
    in_use = container.cidrs
    return [CidrOfAddresses(cidr=each.cidr, gateway=each.gateway) for each in in_use if len(in_use) > 1]


def _assignments(container: AllocatedContainer) -> list[IPAssignment]:
    return [IPAssignment(name=address.name, ip=address.ip) for address in container.addresses]


def _own_address(node: Node, *, v6: bool) -> str:
    return next((address for address in own_addresses(node) if _is_v6(address) == v6), "")


def _is_v6(address: str) -> bool:
    return ":" in address
