"""`podtide subnet add --grow`: a subnet as a file states it, whatever was there before.

A file that states subnets is applied again and again, while people grow and shrink them by hand. So only what the subnet
lacks is added; what it has beside stays, and so does a CIDR that drains.
"""

from podtide.allocator.errors import SubnetExists
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet, SubnetSpec
from podtide.core.ranges import parse_address
from podtide.core.subnet.layout import choose_gateways, exact_network


async def add_or_grow(allocator: Allocator, spec: SubnetSpec) -> Subnet:
    """Add the subnet; if there is one of its name, add the CIDRs and set the gateways that it lacks."""
    try:
        return await allocator.add_subnet(spec)
    except SubnetExists:
        there = await _find(allocator, spec)
        if there is None or _keeps_back_others(spec, there):
            raise
        cidrs = lacking(spec, there)
        if not cidrs:
            return there
        gateways = tuple(
            gateway
            for gateway in spec.gateways
            if any(parse_address(gateway) in exact_network(cidr) for cidr in cidrs)
        )
        return await allocator.grow_subnet(spec.network, spec.name, cidrs, gateways)


def lacking(spec: SubnetSpec, there: Subnet) -> tuple[str, ...]:
    """The CIDRs that the subnet has not, or has with another gateway than the one that is named."""
    named = {str(parse_address(gateway)) for gateway in spec.gateways}
    own = dict(zip(there.cidrs, there.gateways, strict=True))
    chosen = zip(spec.cidrs, choose_gateways(spec.cidrs, spec.gateways), strict=True)
    return tuple(
        cidr
        for cidr, gateway in ((str(exact_network(cidr)), gateway) for cidr, gateway in chosen)
        if cidr not in own or (cidr not in there.draining and gateway in named and own[cidr] != gateway)
    )


async def _find(allocator: Allocator, spec: SubnetSpec) -> Subnet | None:
    for subnet in await allocator.list_subnets(spec.network):
        if subnet.name == spec.name:
            return subnet
    return None


def _keeps_back_others(spec: SubnetSpec, there: Subnet) -> bool:
    asked = {str(parse_address(address)) for address in spec.keep_back}
    return (asked, spec.keep_back_first) != (set(there.keep_back), there.keep_back_first)
