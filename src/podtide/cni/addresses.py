"""An address together with the prefix length of its network, as results and static addresses carry it."""

from ipaddress import IPv4Address, IPv4Interface, IPv6Interface
from typing import TypeAlias

from podtide.core.ranges import IPAddress, parse_address, parse_network

IPInterface: TypeAlias = IPv4Interface | IPv6Interface


def parse_interface(text: str) -> IPInterface:
    """Parse `10.0.0.5/24`, host bits kept; InvalidRange when it is not an address with a prefix length."""
    network = parse_network(text)
    return interface(parse_address(text.partition("/")[0]), network.prefixlen)


def interface(address: IPAddress, prefix_length: int) -> IPInterface:
    """The address in its network of that prefix length."""
    if isinstance(address, IPv4Address):
        return IPv4Interface((int(address), prefix_length))
    return IPv6Interface((int(address), prefix_length))
