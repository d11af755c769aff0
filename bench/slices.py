"""Slicing a /8 by /24: all 65,536 slices, and the plan for 5,000 nodes."""

import timeit
from collections.abc import Iterator

from podtide.core.networks.slices import Slicing, assign_slices, parse_slice_size
from podtide.core.ranges import parse_range

PART = "core"

NODES = 5_000


def measure() -> Iterator[tuple[str, str]]:
    """Milliseconds for each step."""
    address_range = parse_range("10.0.0.0/8").range
    slicing = Slicing(address_range, parse_slice_size("/24", address_range))
    nodes = [f"node-{number}" for number in range(NODES)]

    start = timeit.default_timer()
    written = sum(1 for _ in slicing)
    yield f"slicing a /8 by /24, all {written:,} slices written out", _since(start)

    start = timeit.default_timer()
    plan = assign_slices(slicing, [], nodes)
    yield f"a slice of a /8 by /24 for each of {NODES:,} nodes", _since(start)

    pools = [assignment.slice for assignment in plan.assignments]
    start = timeit.default_timer()
    assign_slices(slicing, plan.assignments, [*nodes[1:], "late"], occupied=pools[1:])
    yield f"one of {NODES:,} nodes replaced, beside {NODES - 1:,} pools", _since(start)

    ipv6 = parse_range("fd00::/32").range
    start = timeit.default_timer()
    assign_slices(Slicing(ipv6, parse_slice_size("/96", ipv6)), [], nodes)
    yield f"a slice of an IPv6 /32 by /96 (2^64 slices) for each of {NODES:,} nodes", _since(start)


def _since(start: float) -> str:
    return f"{(timeit.default_timer() - start) * 1e3:.0f} ms"
