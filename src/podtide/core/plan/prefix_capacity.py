"""How many addresses a CIDR of a size has to give, and which size has enough, before there is a CIDR.

The same arithmetic as a subnet's `layout`, for which an address would have to be chosen first.
"""

from podtide.core.subnet.layout import MOST_ADDRESSES

_ALWAYS_KEPT_BACK = 3
"""A CIDR's network address, its last one and its gateway."""
_LEAST_HOST_BITS = 2


def prefix_capacity(prefix: int, address_bits: int, kept_back: int = 0) -> int:
    """Q of one CIDR with this prefix length."""
    size = 1 << (address_bits - prefix)
    if size > MOST_ADDRESSES:
        # Of a wider CIDR the first addresses are used, and its last one is not among them.
        return MOST_ADDRESSES - _ALWAYS_KEPT_BACK + 1 - kept_back
    return max(0, size - _ALWAYS_KEPT_BACK - kept_back)


def smallest_prefix(addresses: int, address_bits: int, kept_back: int = 0) -> int | None:
    """The prefix length of the smallest CIDR with so many addresses to give; None where none has."""
    prefixes = range(address_bits - _LEAST_HOST_BITS, -1, -1)
    return next(
        (each for each in prefixes if prefix_capacity(each, address_bits, kept_back) >= addresses), None
    )
