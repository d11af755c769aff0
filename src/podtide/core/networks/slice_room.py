"""How many pods of a node could have an address of its slices, for schedulers to place no more of them there.

It is the number of addresses that the node's agent chooses from (`AddressRange.part`), counted by intervals: a slice of
IPv6 has more than could be listed. Definitions of one network may differ in ends and excludes; then an address counts
that any of them gives.

An address counts, too, that a pod holds although no definition gives it any more. A kubelet refuses pods beyond the
number, after a restart also those that run, so it must not be less than they are.

Pods get an address of every range of a network, or none. So the range that has fewest decides.
"""

from collections.abc import Iterable

from podtide.core.intervals import union
from podtide.core.networks.allocations import parse_offset
from podtide.core.ranges import AddressRange, IPNetwork, overlap

MOST_PODS = 1_000_000
"""No number is higher: no node has as many pods, and schedulers count in 64 bits, which a /64 of IPv6 exceeds."""


def pods_of_slice(slice_: IPNetwork, ranges: Iterable[AddressRange], held: Iterable[str] = ()) -> int:
    """How many pods could have an address of the slice, by any of these ranges; `held` are the keys of its IPPool.

    By a range that the slice is not within, the agent gives nothing of it.
    """
    given = union(
        interval
        for each in ranges
        if _is_within(slice_, each.network)
        for interval in each.part(slice_).intervals
    )
    offsets = {offset for key in held if (offset := parse_offset(key)) is not None}
    beyond = sum(
        offset < slice_.num_addresses and not any(first <= offset <= last for first, last in given)
        for offset in offsets
    )
    return min(sum(last - first + 1 for first, last in given) + beyond, MOST_PODS)


def pods_of_network(slices: Iterable[int]) -> int:
    """How many pods could have an address of a network, given how many could of the node's slice of each range."""
    return min(slices, default=0)


def _is_within(slice_: IPNetwork, network: IPNetwork) -> bool:
    shared = overlap(slice_, network)
    return shared is not None and shared.last - shared.first + 1 == slice_.num_addresses
