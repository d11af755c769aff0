"""Which slices the object that lists them names, and how many it can.

Readers of the object want to see the free slices too, as Whereabouts lists them. But 65,536 slices are three megabytes,
and an API server takes one and a half; so a large list names only what is assigned (design W12). Even that has an end:
nodes beyond it wait, and are told why, instead of every write failing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from podtide.core.networks.slices import SliceAssignment, Slicing

WHOLE_UP_TO_BYTES = 512_000
"""How large the object may be for the free slices to be listed."""

LARGEST_BYTES = 1_500_000
"""How large it may be at all: what etcd takes by default."""

_KEPT_FREE_BYTES = 16_000
"""For all that is not an entry: metadata, conditions, the record of who wrote what."""


class SliceEntry(NamedTuple):
    """A slice as text, and its node; "" when it is free."""

    node: str
    slice: str


def listing(slicing: Slicing, assignments: Sequence[SliceAssignment]) -> list[SliceEntry]:
    """The entries in address order: all slices, free ones included, or only the assigned ones."""
    entries = [SliceEntry(assignment.node, str(assignment.slice)) for assignment in assignments]
    free = slicing.count - len(assignments)
    size = sum(map(_size, entries)) + free * _size(SliceEntry("", str(slicing[slicing.count - 1])))
    if size > WHOLE_UP_TO_BYTES - _KEPT_FREE_BYTES or any(
        slicing.index(assignment.slice) is None for assignment in assignments
    ):
        return entries
    holders = {entry.slice: entry.node for entry in entries}
    return [SliceEntry(holders.get(text, ""), text) for text in map(str, slicing)]


def room_for(kept: Sequence[SliceAssignment], added: Sequence[SliceAssignment]) -> int:
    """How many of the entries to add, in their order, the object has room for beside those that are kept."""
    if not added:
        return 0
    left = LARGEST_BYTES - _KEPT_FREE_BYTES - sum(map(_size_of, kept))
    for place, assignment in enumerate(added):
        left -= _size_of(assignment)
        if left < 0:
            return place
    return len(added)


def _size_of(assignment: SliceAssignment) -> int:
    return _size(SliceEntry(assignment.node, str(assignment.slice)))


def _size(entry: SliceEntry) -> int:
    """The entry as JSON, in bytes. Names of nodes and slices have no characters that take more than one."""
    return len('{"nodeName":"","sliceRange":""},') + len(entry.node) + len(entry.slice)
