"""A count of addresses as short text: those of IPv6 are too long to read, and not exact either.

A subnet counts to 2^53 at most (see `layout`), so of an IPv6 /64 the numbers say what podtide uses, not what there is.
"""

from collections.abc import Sequence

from podtide.core.ranges import parse_network
from podtide.core.subnet.layout import MOST_ADDRESSES

_READABLE = 10**12
_MOST_EXPONENT = MOST_ADDRESSES.bit_length() - 1


def count_text(count: int) -> str:
    """`254`, and for a number of more than twelve digits the nearest power of two: `~2^53`."""
    if count <= _READABLE:
        return str(count)
    lower = count.bit_length() - 1
    nearest = lower + (count - 2**lower > 2 ** (lower + 1) - count)
    return f"~2^{nearest}"


def are_text(count: int, one: str = "", many: str = "") -> str:
    """`1 address is` or `3 addresses are`; without a noun `1 is` or `3 are`."""
    return " ".join(filter(None, (str(count), one, "is") if count == 1 else (str(count), many, "are")))


def capacity_text(capacity: int, cidrs: Sequence[str]) -> str:
    """`251 addresses in 10.0.0.0/24`; where not all are used, how many there are and how many of them."""
    there = sum(parse_network(cidr).num_addresses for cidr in cidrs)
    where = ", ".join(cidrs)
    if there <= MOST_ADDRESSES:
        return f"{count_text(capacity)} addresses in {where}"
    exponent = there.bit_length() - 1
    more = "" if there == 2**exponent else "more than "
    return f"{more}2^{exponent} addresses in {where}, of which the first 2^{_MOST_EXPONENT} are used"
