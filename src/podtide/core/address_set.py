"""A set of whole numbers that knows its gaps: "the lowest absent one at or after x" never walks what is present.

Numbers are kept as bits of 1024-bit masks in a dict. Over them lie further levels of masks, where a bit says "this
child is full". A search climbs until some mask has a zero ahead and descends to the first one: a few dict look-ups
and bit tricks, whether a /8 holds a million addresses (three levels) or an IPv6 /64 holds any (seven). Masks without
bits are dropped, so memory follows what is present, not the size of the range.

Written by hand because no library fits: pyroaring ends at 64 bits, and sorted interval containers cost about a hundred
bytes for each hole.
"""

from collections.abc import Iterable, Iterator

_SHIFT = 10
_WIDTH = 1 << _SHIFT
_BIT = _WIDTH - 1
_FULL = (1 << _WIDTH) - 1


class AddressSet:
    """A mutable set of whole numbers from 0 to `size` - 1."""

    __slots__ = ("_counts", "_length", "_levels", "size")

    def __init__(self, size: int, members: Iterable[int] = ()) -> None:
        self.size = size
        self._length = 0
        self._levels: list[dict[int, int]] = []
        # How many positions each level has. The last is above the top level: one, so that a search ends there.
        self._counts = [size]
        while not self._levels or self._counts[-1] > 1:
            self._levels.append({})
            self._counts.append((self._counts[-1] + _BIT) >> _SHIFT)
        for member in members:
            self.add(member)

    def __len__(self) -> int:
        return self._length

    def __contains__(self, member: int) -> bool:
        return bool(self._levels[0].get(member >> _SHIFT, 0) >> (member & _BIT) & 1)

    def __iter__(self) -> Iterator[int]:
        """The members in ascending order."""
        leaves = self._levels[0]
        for node in sorted(leaves):
            mask = leaves[node]
            while mask:
                lowest = _lowest_bit(mask)
                yield node << _SHIFT | lowest
                mask ^= 1 << lowest

    def add(self, member: int) -> None:
        """Take `member` in; nothing happens when it is there already."""
        if not 0 <= member < self.size:
            raise ValueError(f"{member} is outside of this set's 0 to {self.size - 1}")
        if member in self:
            return
        self._length += 1
        position = member
        for level, masks in enumerate(self._levels):
            node = position >> _SHIFT
            mask = masks.get(node, 0) | 1 << (position & _BIT)
            masks[node] = mask
            if mask != self._full_mask(level, node):
                return
            position = node

    def discard(self, member: int) -> None:
        """Take `member` out; nothing happens when it is not there."""
        if member not in self:
            return
        self._length -= 1
        position = member
        for level, masks in enumerate(self._levels):
            node = position >> _SHIFT
            mask = masks[node]
            masks[node] = mask ^ 1 << (position & _BIT)
            if not masks[node]:
                del masks[node]
            if mask != self._full_mask(level, node):
                return
            position = node

    def lowest_absent(self, start: int = 0) -> int | None:
        """The lowest number at or after `start` (which is not negative) that is not a member; None if there is none."""
        level, position = 0, start
        while position < self._counts[level]:
            node, bit = position >> _SHIFT, position & _BIT
            ahead = self._zeroes(level, node) >> bit
            if ahead:
                return self._descend(level, position + _lowest_bit(ahead))
            level, position = level + 1, node + 1
        return None

    def _descend(self, level: int, position: int) -> int:
        """The lowest absent number below a position that is not full."""
        for below in range(level - 1, -1, -1):
            position = position << _SHIFT | _lowest_bit(self._zeroes(below, position))
        return position

    def _zeroes(self, level: int, node: int) -> int:
        return self._full_mask(level, node) ^ self._levels[level].get(node, 0)

    def _full_mask(self, level: int, node: int) -> int:
        """All bits the node can have: the last node of a level ends where the size does."""
        left = self._counts[level] - (node << _SHIFT)
        return _FULL if left >= _WIDTH else (1 << left) - 1


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
