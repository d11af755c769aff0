"""The prefix length and gateway of an address: those of the CIDR that it is in.

A subnet that has grown has several CIDRs, and the gateway of another one does not work for a pod. The CIDRs of a node's
addresses are found in:

    the network container's `cidrs`          along with the addresses, where they are in more than one
    its subnetAddressSpace, defaultGateway   the CIDR of its primary address
    the ClusterSubnet's `cidrs`              where a CRD of Azure's drops the first; it may lag a moment behind the addresses

With podtide's controller, which states CIDRs, an ADD with an address in none of them is not answered yet. Azure's
controller states none, and its subnets have one.
"""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import contains, parse_network


class AddressSpace(Struct, frozen=True):
    """A CIDR and its gateway; "" for what is not known."""

    cidr: str
    gateway: str


def space_of(ip: str, spaces: Iterable[AddressSpace]) -> AddressSpace | None:
    """The address space that an address is in, or None."""
    return next((space for space in spaces if space.cidr and _is_in(ip, space.cidr)), None)


@lru_cache(maxsize=4096)  # simulated, a hundred nodes are in one process
def _is_in(ip: str, cidr: str) -> bool:
    try:
        return contains((parse_network(cidr),), ip)
    except InvalidInput:
        return False  # other programs write these objects too
