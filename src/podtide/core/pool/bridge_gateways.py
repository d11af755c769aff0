"""Which gateway addresses the node's bridge should have, and what to change on it.

A bridge needs the gateway of every CIDR that the node's addresses are in: to the node, such a CIDR is on the bridge, and its
pods reach everything else by that gateway. A CIDR of which the node holds nothing gets none, or the node would look on its
bridge for pods that are elsewhere.

What is on the bridge and is not a gateway of podtide's is left alone. A gateway of podtide's goes when the node holds no
address of its network any more. While it holds one, a pod may have that gateway in its routes, even if the CIDR
names another one by now.
"""

from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_interface

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPNetwork, parse_address, parse_network


class BridgeAddress(Struct, frozen=True):
    """An address that the bridge has."""

    address: str
    """With its prefix length, such as 10.1.0.1/24."""
    is_ours: bool
    """Whether podtide put it there."""


class GatewayChanges(Struct, frozen=True):
    """What to change on the bridge. Removals come first: removing an IPv4 address can take others of its network along."""

    remove: tuple[str, ...] = ()
    add: tuple[str, ...] = ()


def gateways_needed(stated: Mapping[str, str], held: Collection[str]) -> dict[str, str]:
    """The gateway, with prefix length, of each CIDR that has one of the addresses `held`.

    `stated` is the gateway of each known CIDR. For one that states none ("") it is the CIDR's first address, as the bridge
    plugin has it, unless that is an address of a pod. CIDRs and gateways that are not valid are left out.
    """
    needed = {}
    for cidr, gateway in stated.items():
        network = _network(cidr)
        if network is not None and _is_used(network, held):
            address = gateway or str(network[min(1, network.num_addresses - 1)])
            if _is_in(network, address) and address not in held:
                needed[cidr] = f"{parse_address(address)}/{network.prefixlen}"
    return needed


def decide_changes(
    needed: Collection[str], held: Collection[str], present: Iterable[BridgeAddress]
) -> GatewayChanges:
    """What to change on a bridge with the addresses `present`, so that it has the gateways `needed`."""
    there = tuple(present)
    stale = tuple(
        each.address
        for each in there
        if each.is_ours
        and each.address not in needed
        and not _is_used(ip_interface(each.address).network, held)
    )
    known = {each.address for each in there}
    return GatewayChanges(
        remove=stale, add=tuple(gateway for gateway in dict.fromkeys(needed) if gateway not in known)
    )


def _is_used(network: IPNetwork, held: Iterable[str]) -> bool:
    return any(_is_in(network, ip) for ip in held)


def _is_in(network: IPNetwork, ip: str) -> bool:
    try:
        return parse_address(ip) in network
    except InvalidInput:
        return False  # other programs write these objects too


def _network(cidr: str) -> IPNetwork | None:
    try:
        return parse_network(cidr)
    except InvalidInput:
        return None
