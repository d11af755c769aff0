"""Sixteen addresses at a time: a mask of 16 bits says which of them are meant.

A subnet's addresses are numbered, and sixteen in a row are a chunk. Batches are 16 by default, so that a grant touches a
row or two of the allocator's database, whatever the size of the subnet; a row per address would be sixteen times as many,
and one bitmap of the whole subnet would be written anew with every grant.
"""

from collections.abc import Iterable
from functools import lru_cache

from podtide.core.intervals import Interval

CHUNK_SIZE = 16
WHOLE = (1 << CHUNK_SIZE) - 1
"""The mask of a chunk with all of its addresses."""


def lowest(mask: int, count: int) -> int:
    """The `count` lowest addresses of the mask, or all of them where it has no more."""
    if mask.bit_count() <= count:
        return mask
    chosen = 0
    for _ in range(count):
        bit = mask & -mask
        chosen |= bit
        mask ^= bit
    return chosen


@lru_cache(maxsize=4_096)
def positions(mask: int) -> tuple[int, ...]:
    """Where in the chunk the addresses of the mask are, lowest first."""
    return tuple(position for position in range(CHUNK_SIZE) if mask >> position & 1)


def mask_between(first: int, last: int) -> int:
    """The mask of the positions from `first` to `last`, as far as they lie in the chunk; 0 when none does."""
    first, last = max(first, 0), min(last, CHUNK_SIZE - 1)
    return 0 if first > last else (1 << (last + 1)) - (1 << first)


def masks_of(intervals: Iterable[Interval]) -> dict[int, int]:
    """The masks, by chunk, of the numbers in these intervals, which are few."""
    masks: dict[int, int] = {}
    for first, last in intervals:
        for chunk in range(first // CHUNK_SIZE, last // CHUNK_SIZE + 1):
            start = chunk * CHUNK_SIZE
            masks[chunk] = masks.get(chunk, 0) | mask_between(first - start, last - start)
    return masks
