"""Reading a NodeNetworkConfig: its owner, the node's network containers, and the parameters of its pool.

Other programs write these objects too, so values that cannot be used are skipped and described in `unusable`, and nothing
here raises.
"""

from collections.abc import Iterable

from msgspec import Struct

from podtide.agent.request.address_space import AddressSpace
from podtide.core.errors import InvalidInput
from podtide.core.pool.pool import Family, GrantedContainer
from podtide.core.ranges import parse_address, parse_network
from podtide.core.subnet.scaler import NodeScaler
from podtide.resources.base import Key
from podtide.resources.conditions import ConditionStatus
from podtide.resources.foreign_config import is_foreign
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    NetworkContainer,
    NodeNetworkConfig,
)


class NodeNetwork(Struct, frozen=True, kw_only=True):
    """A network container of the node, with the network settings that an ADD returns along with an address of it."""

    container: GrantedContainer
    subnet: str
    cidr: str
    gateway: str
    primary: str
    spaces: tuple[AddressSpace, ...] = ()
    """The CIDRs that its addresses are in, as far as it states them: the primary's first."""
    unusable: tuple[str, ...] = ()
    """Sentences about values in it that cannot be used."""


def config_key(node: str) -> Key:
    """The namespace and name of the node's NodeNetworkConfig."""
    return Key(SYSTEM_NAMESPACE, node)


def refusal_of(config: NodeNetworkConfig | None, node: str) -> str:
    """Why the object cannot be used, in words; "" when it can."""
    name = f"NodeNetworkConfig {config_key(node)}"
    if config is None:
        return f"{name} does not exist: the request controller creates it; check that it runs"
    if config.metadata.deletion_timestamp:
        return f"{name} is being deleted: nothing new is handed out until there is another"
    if not config.node_uid:
        return f"{name} has no Node as its controller: it is not known whose addresses it lists; delete it"
    if is_foreign(config):
        return (
            f"{name} lists network containers of another program, which may hand out their addresses on this node: "
            f"`podtide migrate cns --hand-over --node {node}` lets podtide take its place"
        )
    return ""


def is_settled(config: NodeNetworkConfig) -> bool:
    """Whether the request controller has fulfilled the whole request. Until then, a missing container means nothing."""
    return config.status.status is ConfigStatus.UPDATED


def networks_of(config: NodeNetworkConfig) -> tuple[NodeNetwork, ...]:
    """The node's network containers."""
    return tuple(_network(container) for container in config.status.network_containers if container.id)


def _network(container: NetworkContainer) -> NodeNetwork:
    primary = container.primary_ip or container.primary_ipv6
    stated_cidr = container.subnet_address_space or container.subnet_address_space_v6
    stated_gateway = container.default_gateway or container.default_gateway_v6
    family = _family(primary or stated_cidr)
    cidr, gateway = _network_in(stated_cidr, family), _address_in(stated_gateway, family)
    unusable = [
        f"network container {container.id} has {stated!r} for its {what}, which is not valid for IPv{family}: pods do not get it"
        for what, stated, usable in (("subnet", stated_cidr, cidr), ("gateway", stated_gateway, gateway))
        if stated and not usable
    ]
    spaces = {cidr: gateway}
    for each in container.cidrs:
        if known := _network_in(each.cidr, family):
            spaces[known] = _address_in(each.gateway, family)
        else:
            unusable.append(
                f"network container {container.id} lists {each.cidr!r} as a range, which is not valid for IPv{family}: "
                "pods do not get it"
            )
    addresses: dict[str, str] = {}
    for granted in container.ip_assignments:
        ip = _address_in(granted.ip, family)
        if not granted.name or not ip:
            unusable.append(
                f"network container {container.id} lists {granted.ip!r} as {granted.name!r}, "
                f"which is not a name and an IPv{family} address: it is not used"
            )
        else:
            addresses[granted.name] = ip
    return NodeNetwork(
        container=GrantedContainer(container.id, container.version, family, addresses),
        subnet=container.subnet_name,
        cidr=cidr,
        gateway=gateway,
        primary=primary,
        spaces=tuple(AddressSpace(*each) for each in spaces.items()),
        unusable=tuple(unusable),
    )


def _family(address: str) -> Family:
    return 6 if ":" in address else 4


def _address_in(text: str, family: Family) -> str:
    """The address in canonical form, as in the status of pods; "" when it is not an address of the family."""
    try:
        address = parse_address(text)
    except InvalidInput:
        return ""
    return str(address) if address.version == family else ""


def _network_in(text: str, family: Family) -> str:
    """The network without host bits; "" when it is not a network of the family."""
    try:
        network = parse_network(text)
    except InvalidInput:
        return ""
    return str(network) if network.version == family else ""


def subnets_of(networks: Iterable[NodeNetwork]) -> tuple[str, ...]:
    """The subnets that the node's addresses come from, each once."""
    return tuple(dict.fromkeys(network.subnet for network in networks if network.subnet))


def node_scaler_of(config: NodeNetworkConfig) -> NodeScaler:
    """The node's own parameters."""
    return config.status.scaler.stated


def is_owed(config: NodeNetworkConfig) -> bool:
    """Whether the subnet could not grant the whole request, as the request controller states."""
    return any(
        container.status is ContainerStatus.SUBNET_FULL for container in config.status.network_containers
    )


def complaints(config: NodeNetworkConfig) -> str:
    """The messages of the conditions that are not True."""
    conditions = config.status.conditions
    return "; ".join(each.message for each in conditions if each.status is not ConditionStatus.TRUE)
