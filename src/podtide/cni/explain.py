"""Which address the next ADD would get, and why: `podtide explain assign`.

A pure answer to a configuration and a list of taken addresses, by the same functions that assign addresses. It
carries all of its terms, so that text, JSON and page can tell the same story.
"""

from collections.abc import Iterable

import msgspec

from podtide.cni.ipam_config import IpamRange, understand
from podtide.cni.network_config import find_ipam_anywhere
from podtide.core.errors import InvalidConfig, RangeFull
from podtide.core.ranges import IPAddress, network_at, parse_address, parse_range

MOST_REPORTED = 2**53
"""Counts in JSON are exact up to here; more is not counted (for IPv6 ranges; design D14)."""


class ExplainedRange(msgspec.Struct, frozen=True, kw_only=True):
    """The next address of one range, and the terms that led to it. Counts end at `MOST_REPORTED`."""

    range: str
    """The network that the range is in."""
    slice: str | None
    """The node slice that the address is in, None in classic mode. A node assigns from its own slice only: this is the
    first slice with a free address."""
    first: str
    """The lowest address that may be handed out."""
    last: str
    """The highest."""
    size: int
    """How many addresses the network has."""
    withheld_by_ends: int
    """How many addresses start and end take away, after the network's own first and last."""
    withheld_by_excludes: int
    withheld_by_gateway: int
    capacity: int
    """How many addresses may be handed out."""
    taken: int
    """How many of these are taken."""
    address: str
    """What the next ADD would get."""
    prefix_length: int
    """The prefix length it would get with it."""


class ExplainedAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What the next ADD would get: one address from each range."""

    address: str
    """The first range's."""
    addresses: tuple[str, ...]
    ranges: tuple[ExplainedRange, ...]
    static: tuple[str, ...]
    """Addresses with their prefix length that every pod gets after those."""
    gateway: str | None
    warnings: tuple[str, ...]


def explain_assign(text: bytes | str, taken: Iterable[str] = ()) -> ExplainedAssignment:
    """Explain the next ADD with this IPAM object, CNI configuration or NetworkAttachmentDefinition.

    RangeFull when one of the ranges has no address left: an ADD gets one from each, or none at all.
    """
    config = understand(find_ipam_anywhere(text))
    if config.is_primary:
        raise InvalidConfig(
            "this network has no range, so its addresses come from the node's pool; "
            "give it a 'range' to have an assignment explained"
        )
    gone = {parse_address(address.strip()) for address in taken}
    strangers = [
        address for address in gone if not any(address in item.addresses.network for item in config.ranges)
    ]
    ranges: list[ExplainedRange] = []
    for item in config.ranges:
        explained = _explain_range(item, gone)
        ranges.append(explained)
        gone.add(parse_address(explained.address))  # ranges may overlap, and no address is given twice
    return ExplainedAssignment(
        address=ranges[0].address,
        addresses=tuple(explained.address for explained in ranges),
        ranges=tuple(ranges),
        static=tuple(str(assigned.address) for assigned in config.addresses),
        gateway=str(config.gateway) if config.gateway else None,
        warnings=(
            *config.warnings,
            *(f"taken {address} is in none of the ranges" for address in sorted(map(str, strangers))),
        ),
    )


def _explain_range(item: IpamRange, taken: set[IPAddress]) -> ExplainedRange:
    whole, keys = item.addresses, item.keys
    taken_here = sum(other in whole for other in taken)
    address = _next_address(item, taken)
    if not whole.capacity:
        raise RangeFull(
            f"no address of {whole} may be handed out: start, end, excludes and gateway leave none; widen the range"
        )
    if address is None:
        edges = "" if item.slice_size is None else ", and the rest are the first or last of a slice"
        raise RangeFull(
            f"no address of {whole} is free: of {whole.capacity} that may be handed out, {taken_here} are taken{edges}; "
            "free some, or widen the range"
        )
    # Read again with one key more each time: the difference is what that key took away.
    network = parse_range(str(whole)).range
    bounded = parse_range(keys.range, start=keys.range_start, end=keys.range_end).range
    allowed = parse_range(keys.range, start=keys.range_start, end=keys.range_end, excludes=keys.exclude).range
    return ExplainedRange(
        range=str(whole),
        slice=None if item.slice_size is None else str(network_at(address, item.slice_size)),
        first=str(whole.address(whole.intervals[0].first)),
        last=str(whole.address(whole.intervals[-1].last)),
        size=_reported(whole.size),
        withheld_by_ends=_reported(network.capacity - bounded.capacity),
        withheld_by_excludes=_reported(bounded.capacity - allowed.capacity),
        withheld_by_gateway=_reported(allowed.capacity - whole.capacity),
        capacity=_reported(whole.capacity),
        taken=taken_here,
        address=str(address),
        prefix_length=whole.network.prefixlen,
    )


def _next_address(item: IpamRange, taken: set[IPAddress]) -> IPAddress | None:
    """The lowest free address; with slices, the lowest that is neither first nor last of its slice."""
    whole = item.addresses
    free = map(whole.address, whole.free(whole.taken(taken)))
    if item.slice_size is None:
        return next(free, None)
    return next(
        (address for address in free if address in whole.part(network_at(address, item.slice_size))), None
    )


def _reported(count: int) -> int:
    return min(count, MOST_REPORTED)
