"""A subnet in sentences: what it is, and what holds up its CIDRs that drain."""

from collections.abc import Iterator, Sequence

from podtide.allocator.port import Allocator
from podtide.allocator.subnets import CidrHolders, Subnet
from podtide.core.subnet.count_text import capacity_text, count_text

_MOST_NODES = 20


def sentence_of(subnet: Subnet) -> str:
    """How many addresses it has, where, and with which gateways."""
    name = f"{subnet.network}/{subnet.name}"
    parts = [
        f"{f'gateway {gateway}' if gateway else 'no gateway'}{', draining' if cidr in subnet.draining else ''}"
        for cidr, gateway in zip(subnet.cidrs, subnet.gateways, strict=True)
    ]
    if len(parts) == 1:
        return f"{name} has {capacity_text(subnet.capacity, subnet.cidrs)}, {parts[0]}"
    each = (f"{cidr}, {part}" for cidr, part in zip(subnet.cidrs, parts, strict=True))
    return f"{name} has {count_text(subnet.capacity)} addresses in {'; '.join(each)}"


async def holders_of(allocator: Allocator, subnet: Subnet) -> list[CidrHolders]:
    """For each draining CIDR, which nodes hold addresses of it."""
    return [await allocator.holders(subnet.network, subnet.name, cidr) for cidr in subnet.draining]


def draining_lines(subnet: Subnet, held: Sequence[CidrHolders]) -> Iterator[str]:
    """For each draining CIDR, what nodes hold of it, and when they give it back, as text."""
    staying = subnet.capacity - subnet.draining_reserved
    if held and subnet.reserved > staying:
        yield (
            f"  the CIDRs that stay have {staying} addresses, and {subnet.reserved} are reserved: nodes will be short "
            "unless the subnet grows or pods go"
        )
    for cidr in held:
        nodes = cidr.holders
        reserved = sum(each.primary + each.addresses for each in nodes) + cidr.quarantined
        yield f"  {cidr.cidr} drains: {reserved} addresses are still reserved, and it leaves when none is"
        for node in nodes[:_MOST_NODES]:
            yield f"    {node.node} of {node.cluster} has {node.words}"
        if len(nodes) > _MOST_NODES:
            yield f"    and {len(nodes) - _MOST_NODES} more nodes; all of them with `-o json`"
        if cidr.quarantined:
            yield f"    removed nodes had {cidr.quarantined}, which are in quarantine until it ends"
        if nodes:
            yield (
                "    an address on a pod stays until the pod is deleted; a primary address until its node asks for another, "
                "as podtide's agents do, or is replaced"
            )
