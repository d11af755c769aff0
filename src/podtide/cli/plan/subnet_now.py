"""A subnet as it is now, for `podtide plan fit`: as an allocator has it, or as numbers say."""

from collections import Counter

from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.cli.options.names import require_object_name
from podtide.cli.plan.pod_counts import PodCounts
from podtide.controller.subnets.batch_decision import bounds_in_force, reading_of, standing_of
from podtide.core.errors import InvalidInput
from podtide.core.plan.fit import KnownDemand, known_demand
from podtide.core.plan.node_loads import level
from podtide.core.ranges import parse_network
from podtide.core.subnet.batch import BatchInForce
from podtide.core.subnet.batch_bounds import BatchBounds, check_fit
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS

_IPV4_BITS = 32


class SubnetNow(Struct, frozen=True, kw_only=True):
    """What decides whether more pods fit."""

    name: str
    demand: KnownDemand
    capacity: int
    bounds: BatchBounds
    standing: BatchInForce | None = None
    reserved: int | None = None
    """R, where it is known and not computed."""
    address_bits: int = _IPV4_BITS

    @property
    def nodes(self) -> int:
        """How many nodes have addresses of it."""
        return sum(self.demand.high.values())


def imagined_subnet(capacity: int, pods: PodCounts, batch: int) -> SubnetNow:
    """A subnet of which only numbers are known."""
    bounds = BatchBounds(batch)
    check_fit(bounds, DEFAULT_MAX_IPS)
    loads = Counter({each: int(count) for each, count in pods.mix.items()})
    return SubnetNow(
        name="the subnet", demand=KnownDemand(low=loads, high=loads), capacity=capacity, bounds=bounds
    )


def spread_pods(pods: int, nodes: int) -> PodCounts:
    """So many pods, evenly on so many nodes."""
    if pods and not nodes:
        raise InvalidInput(f"{pods} running pods on 0 nodes is refused: say on how many by --running-nodes")
    return PodCounts(level({0: nodes}, pods), nodes)


async def subnet_at(allocator: Allocator, wanted: str | None) -> SubnetNow:
    """The subnet as the allocator has it: the wanted one, or the only one there is."""
    network, name = await _chosen(allocator, wanted)
    report = await allocator.demand(network, name)
    reading, standing = reading_of(report), standing_of(report.subnet.in_force)
    bounds = bounds_in_force(report)
    return SubnetNow(
        name=f"{network}/{name}",
        demand=known_demand(reading, standing, bounds.top),
        capacity=reading.capacity,
        bounds=bounds,
        standing=standing if standing.scaler else None,
        reserved=reading.reserved,
        address_bits=parse_network(report.subnet.cidrs[0]).max_prefixlen,
    )


async def _chosen(allocator: Allocator, wanted: str | None) -> tuple[str, str]:
    if wanted is not None:
        network, slash, name = wanted.partition("/")
        if not slash:
            raise InvalidInput(f"--subnet {wanted!r} is refused: give NETWORK/NAME, such as blue/pods")
        require_object_name(network, "the network of --subnet")
        require_object_name(name, "the name of --subnet")
        return network, name
    there = await allocator.list_subnets()
    if len(there) != 1:
        names = ", ".join(f"{each.network}/{each.name}" for each in there[:5]) or "none"
        raise InvalidInput(f"say which subnet by --subnet NETWORK/NAME: the allocator has {names}")
    return there[0].network, there[0].name
