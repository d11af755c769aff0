"""What holds up the CIDRs of a subnet that drain, for people."""

from collections.abc import Iterator, Sequence

from podtide.allocator.port import Allocator, CidrHolder, CidrHolders, Subnet

_MOST_NODES = 20


async def holders_of(allocator: Allocator, subnet: Subnet) -> list[CidrHolders]:
    """Who has addresses of each CIDR that drains."""
    return [await allocator.holders(subnet.network, subnet.name, cidr) for cidr in subnet.draining]


def draining_lines(subnet: Subnet, held: Sequence[CidrHolders]) -> Iterator[str]:
    """For each CIDR that drains, who has what of it, and what makes them give it back."""
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
            yield f"    {node.node} of {node.cluster} has {_holding(node)}"
        if len(nodes) > _MOST_NODES:
            yield f"    and {len(nodes) - _MOST_NODES} more nodes; all of them with `-o json`"
        if cidr.quarantined:
            yield f"    removed nodes had {cidr.quarantined}, which are in quarantine until it ends"
        if nodes:
            yield (
                "    an address on a pod stays until the pod is deleted; a primary address until its node asks for another, "
                "as podtide's agents do, or is replaced"
            )


def _holding(node: CidrHolder) -> str:
    parts = ["its primary address"] if node.primary else []
    if node.addresses:
        parts.append(f"{node.addresses} for pods")
    return " and ".join(parts)
