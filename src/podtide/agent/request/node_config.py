"""What a NodeNetworkConfig tells the agent: whose it is, what the node holds, and how its pool is to be sized.

Pure reading. Other programs write these objects too, so what cannot be used is passed over in words, and nothing here
raises.
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
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    NetworkContainer,
    NodeNetworkConfig,
)


class Network(Struct, frozen=True, kw_only=True):
    """A network container of the node, with what a pod must be told along with an address of it."""

    container: GrantedContainer
    subnet: str
    cidr: str
    gateway: str
    primary: str
    spaces: tuple[AddressSpace, ...] = ()
    """The CIDRs that its addresses are in, as far as it says: the primary's first."""
    unusable: tuple[str, ...] = ()
    """Sentences about what it says and cannot be used."""


def config_key(node: str) -> Key:
    """Where the node's NodeNetworkConfig is."""
    return Key(SYSTEM_NAMESPACE, node)


def refusal_of(config: NodeNetworkConfig | None, node: str) -> str:
    """Why the object is nothing to go by, in words; "" when it is."""
    name = f"NodeNetworkConfig {config_key(node)}"
    if config is None:
        return f"{name} is not there: the request controller makes it; see that it runs"
    if config.metadata.deletion_timestamp:
        return f"{name} is being deleted: nothing new is handed out until there is another"
    if not config.node_uid:
        return f"{name} has no Node as its controller: it is not known whose addresses it lists; delete it"
    return ""


def is_settled(config: NodeNetworkConfig) -> bool:
    """Whether the request controller has done all it was asked for. Until then, what its status lacks says nothing."""
    return config.status.status is ConfigStatus.UPDATED


def networks_of(config: NodeNetworkConfig) -> tuple[Network, ...]:
    """The node's network containers."""
    return tuple(_network(container) for container in config.status.network_containers if container.id)


def _network(container: NetworkContainer) -> Network:
    primary = container.primary_ip or container.primary_ipv6
    stated_cidr = container.subnet_address_space or container.subnet_address_space_v6
    stated_gateway = container.default_gateway or container.default_gateway_v6
    family = _family(primary or stated_cidr)
    cidr, gateway = _network_in(stated_cidr, family), _address_in(stated_gateway, family)
    unusable = [
        f"network container {container.id} has {stated!r} for its {what}, which is none of IPv{family}: no pod is told it"
        for what, stated, usable in (("subnet", stated_cidr, cidr), ("gateway", stated_gateway, gateway))
        if stated and not usable
    ]
    spaces = {cidr: gateway}
    for each in container.cidrs:
        if known := _network_in(each.cidr, family):
            spaces[known] = _address_in(each.gateway, family)
        else:
            unusable.append(
                f"network container {container.id} lists {each.cidr!r} as a range, which is none of IPv{family}: "
                "no pod is told it"
            )
    addresses: dict[str, str] = {}
    for granted in container.ip_assignments:
        ip = _address_in(granted.ip, family)
        if not granted.name or not ip:
            unusable.append(
                f"network container {container.id} lists {granted.ip!r} as {granted.name!r}, "
                f"which is no IPv{family} address with a name: it is not used"
            )
        else:
            addresses[granted.name] = ip
    return Network(
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
    """The address as pods' statuses spell it; "" when it is none of the family."""
    try:
        address = parse_address(text)
    except InvalidInput:
        return ""
    return str(address) if address.version == family else ""


def _network_in(text: str, family: Family) -> str:
    """The network without host bits; "" when it is none of the family."""
    try:
        network = parse_network(text)
    except InvalidInput:
        return ""
    return str(network) if network.version == family else ""


def subnets_of(networks: Iterable[Network]) -> tuple[str, ...]:
    """The subnets that the node's addresses come from, each once."""
    return tuple(dict.fromkeys(network.subnet for network in networks if network.subnet))


def node_scaler_of(config: NodeNetworkConfig) -> NodeScaler:
    """The node's own parameters."""
    return config.status.scaler.stated


def is_owed(config: NodeNetworkConfig) -> bool:
    """Whether the request controller said that the subnet could not give all that was asked for."""
    return any(
        container.status is ContainerStatus.SUBNET_FULL for container in config.status.network_containers
    )


def complaints(config: NodeNetworkConfig) -> str:
    """What the request controller found wanting, in its own words."""
    conditions = config.status.conditions
    return "; ".join(each.message for each in conditions if each.status is not ConditionStatus.TRUE)
