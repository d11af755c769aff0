"""Which node has which slice of a secondary network's range (design D9).

A range is cut into slices of one size, 2^k of them, of which none is ever written down: a slice is its index. The
decision takes what is assigned, which nodes there are and what is occupied, and answers the whole plan. Its rules: what
is assigned never moves, slices of nodes that are gone are freed before any is assigned, newcomers get the first free
slice in address order, and no node waits while one is free.

Slices cover the whole network, whatever start, end and excludes say, because that is how Whereabouts counts them. But
these hold within slices too (design T13), so a slice in which they leave no address is never assigned.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from msgspec import Struct

from podtide.core.address_set import AddressSet
from podtide.core.errors import InvalidSlice
from podtide.core.intervals import Interval, absent, union, without
from podtide.core.ranges import NEVER_HANDED_OUT, AddressRange, IPNetwork, overlap

_SLICE_SIZE = re.compile(r"/?([0-9]{1,3})")


def parse_slice_size(text: str, address_range: AddressRange) -> int:
    """The prefix length that `/24` or `24` stands for; InvalidSlice when the range cannot be cut by it."""
    network = address_range.network
    smallest = network.max_prefixlen - 2
    match = _SLICE_SIZE.fullmatch(text)
    if match is None:
        raise InvalidSlice(
            f"slice size {text!r} is not a valid prefix length: write one from /{network.prefixlen} to /{smallest} for {network}"
        )
    length = int(match[1])
    if length < network.prefixlen:
        raise InvalidSlice(
            f"slice size /{length} is larger than its range {network}: use /{network.prefixlen} to /{smallest}"
        )
    if length > smallest:
        raise InvalidSlice(
            f"slice size /{length} leaves no usable address in a slice, as its first and its last are never handed "
            f"out: use /{network.prefixlen} to /{smallest}"
        )
    return length


class Slicing(Struct, frozen=True):
    """A range cut into slices of one prefix length; a slice is computed from its index when asked for."""

    range: AddressRange
    prefix_length: int

    @property
    def count(self) -> int:
        """How many slices there are, up to 2^128."""
        return 1 << (self.prefix_length - self.range.network.prefixlen)

    def __getitem__(self, index: int) -> IPNetwork:
        """The slice at `index`, counted in address order."""
        if not 0 <= index < self.count:
            raise IndexError(f"slice {index} of {self.range} does not exist: there are {self.count}")
        network = self.range.network
        return type(network)((int(network.network_address) + (index << self._host_bits), self.prefix_length))

    def __iter__(self) -> Iterator[IPNetwork]:
        """All slices in address order, each computed when asked for."""
        return iter(self.range.network.subnets(new_prefix=self.prefix_length))

    def index(self, network: IPNetwork) -> int | None:
        """The index of the slice that is this network; None when it is none of these slices."""
        whole = self.range.network
        if network.prefixlen != self.prefix_length or network.version != whole.version:
            return None
        index = int(network.network_address) - int(whole.network_address) >> self._host_bits
        return index if 0 <= index < self.count else None

    def overlapping(self, network: IPNetwork) -> Interval | None:
        """The indexes of the slices that share an address with this network; None when there are none."""
        shared = overlap(self.range.network, network)
        return shared and Interval(shared.first >> self._host_bits, shared.last >> self._host_bits)

    def offered(self) -> tuple[Interval, ...]:
        """The indexes of the slices in which at least one address may be handed out."""
        size = 1 << self._host_bits
        if size <= NEVER_HANDED_OUT:
            return ()
        within = (
            (_inner_first(first, size), _inner_last(last, size)) for first, last in self.range.intervals
        )
        return union(Interval(first // size, last // size) for first, last in within if first <= last)

    @property
    def _host_bits(self) -> int:
        return self.range.network.max_prefixlen - self.prefix_length


def _inner_first(offset: int, size: int) -> int:
    """The lowest offset at or after this one that is neither the first nor the last of its slice."""
    place = offset % size
    return offset + (1 if place == 0 else 2 if place == size - 1 else 0)


def _inner_last(offset: int, size: int) -> int:
    """The highest offset at or before this one that is neither the first nor the last of its slice."""
    place = offset % size
    return offset - (1 if place == size - 1 else 2 if place == 0 else 0)


class SliceAssignment(Struct, frozen=True):
    """A node and its slice."""

    node: str
    slice: IPNetwork


class SlicePlan(Struct, frozen=True, kw_only=True):
    """The planned assignment of slices to nodes.

    Assignments are in address order, nodes in the order they were given. With conflicts the new range or slice size
    is refused, and nothing changes: all that was assigned is kept.
    """

    kept: tuple[SliceAssignment, ...]
    freed: tuple[SliceAssignment, ...] = ()
    added: tuple[SliceAssignment, ...] = ()
    waiting: tuple[str, ...] = ()
    conflicts: tuple[SliceAssignment, ...] = ()
    refusal: str = ""
    """One line on why nothing changes, where there are conflicts."""

    @property
    def assignments(self) -> tuple[SliceAssignment, ...]:
        """Everything that is assigned under this plan, in address order."""
        return in_address_order((*self.kept, *self.added))


def assign_slices(  # noqa: PLR0913 - what is so, each by itself
    slicing: Slicing,
    assigned: Iterable[SliceAssignment],
    nodes: Iterable[str],
    *,
    occupied: Iterable[IPNetwork] = (),
    live: AbstractSet[SliceAssignment] = frozenset(),
    unused: AbstractSet[SliceAssignment] = frozenset(),
    contested: Iterable[IPNetwork] = (),
) -> SlicePlan:
    """Plan the slices of `nodes`, given what is `assigned` so far.

    A slice that overlaps anything `occupied` (every existing IPPool; looked through only when there is a new node) is
    not assigned to a new node. An assignment that is `live` (an address of it is in use or in quarantine) is never freed: it
    stays with a node that is gone, and where its slice is none of the new ones it is a conflict. One that is `unused` (no
    pool of it could ever be used) is freed where it overlaps anything `contested`, which other networks have first.
    """
    before = in_address_order(assigned)
    wanted = dict.fromkeys(nodes)
    kept: list[SliceAssignment] = []
    freed: list[SliceAssignment] = []
    conflicts: list[SliceAssignment] = []
    taken = AddressSet(slicing.count)
    holders: set[str] = set()
    lost = union(filter(None, map(slicing.overlapping, contested))) if unused else ()
    # Live ones first: of two slices that a node has by mistake, or two nodes that have one, the one in use counts.
    for assignment in sorted(before, key=lambda assignment: assignment not in live):
        is_live = assignment in live
        index = slicing.index(assignment.slice)
        is_due = is_live or (assignment.node in wanted and assignment.node not in holders)
        if index is None and is_live:
            conflicts.append(assignment)
        elif index is None or index in taken or not is_due or (assignment in unused and _is_in(lost, index)):
            freed.append(assignment)
        else:
            kept.append(assignment)
            taken.add(index)
            holders.add(assignment.node)
    if conflicts:
        return _refused(slicing, before, wanted, conflicts)

    newcomers = [node for node in wanted if node not in holders]
    free = _free(slicing, occupied, taken) if newcomers else ()
    added = [SliceAssignment(node, slicing[index]) for node, index in zip(newcomers, free, strict=False)]
    return SlicePlan(
        kept=in_address_order(kept),
        freed=in_address_order(freed),
        added=tuple(added),
        waiting=tuple(newcomers[len(added) :]),
    )


def _is_in(intervals: Iterable[Interval], index: int) -> bool:
    return any(first <= index <= last for first, last in intervals)


def _free(slicing: Slicing, occupied: Iterable[IPNetwork], taken: AddressSet) -> Iterator[int]:
    """The indexes of the slices that can be assigned to a new node, in address order."""
    closed = filter(None, map(slicing.overlapping, occupied))
    return absent(without(slicing.offered(), closed), taken)


def _refused(
    slicing: Slicing,
    before: tuple[SliceAssignment, ...],
    wanted: Iterable[str],
    conflicts: list[SliceAssignment],
) -> SlicePlan:
    """The plan that keeps every assignment, and says why."""
    example = conflicts[0]
    others = f" (and {len(conflicts) - 1} more likewise)" if len(conflicts) > 1 else ""
    holders = {assignment.node for assignment in before}
    return SlicePlan(
        kept=before,
        waiting=tuple(node for node in wanted if node not in holders),
        conflicts=tuple(conflicts),
        refusal=(
            f"cutting {slicing.range} by /{slicing.prefix_length} is refused: it has no slice {example.slice}, where node "
            f"{example.node} has addresses in use{others}; drain it, or keep the range and slice size as they were"
        ),
    )


def in_address_order(assignments: Iterable[SliceAssignment]) -> tuple[SliceAssignment, ...]:
    """The same, lowest address first."""
    return tuple(
        sorted(
            assignments,
            key=lambda assignment: (assignment.slice.version, int(assignment.slice.network_address)),
        )
    )
