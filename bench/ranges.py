"""Lowest free and the n lowest free with a million addresses taken: the figures must not grow with what is taken."""

import random
import timeit
from collections.abc import Iterator
from functools import partial
from itertools import islice

from podtide.core.address_set import AddressSet
from podtide.core.ranges import AddressRange, parse_range

PART = "core"

TAKEN = 1_000_000
ROUNDS = 20_000


def measure() -> Iterator[tuple[str, str]]:
    """Microseconds for each question, in an IPv4 /8 and an IPv6 /64."""
    for text in ("10.0.0.0/8", "fd00::/64"):
        address_range = parse_range(text).range
        taken = AddressSet(address_range.size, range(1, TAKEN + 1))
        given_back = random.Random(1).choices(range(1, TAKEN + 1), k=ROUNDS)

        seconds = timeit.timeit(partial(address_range.lowest_free, taken), number=ROUNDS)
        yield f"lowest free in {text}, the first 10^6 taken", _each(seconds)

        seconds = timeit.timeit(partial(_first_free, address_range, taken, 16), number=ROUNDS // 10)
        yield f"16 lowest free in {text}, the first 10^6 taken", _each(seconds * 10)

        start = timeit.default_timer()
        for offset in given_back:
            taken.discard(offset)
            lowest = address_range.lowest_free(taken)
            assert lowest == offset
            taken.add(lowest)
        yield f"give one of 10^6 back in {text}, find it, take it", _each(timeit.default_timer() - start)


def _each(seconds: float) -> str:
    return f"{seconds / ROUNDS * 1e6:.1f} µs"


def _first_free(address_range: AddressRange, taken: AddressSet, count: int) -> list[int]:
    return list(islice(address_range.free(taken), count))
