"""Every address of every subnet: its state and its node, kept address by address as objects change.

Addresses are kept in blocks of 256 by their number, only those blocks that have an address in use: a /8 in which a thousand
addresses are held takes as much memory as a /22. What a block looks like without them (which addresses are outside the
subnet, kept back, free or drained) follows from the subnet's ranges, and is computed when the block is asked for.

The blocks of a subnet are numbered range by range. Two ranges that share a block have it once. IPv6 ranges are too large to
be numbered to their end: of each, the blocks up to the last in use are, and at most `MOST_IPV6_BLOCKS`.
"""

from array import array
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPNetwork, parse_network

BLOCK_BITS = 8
BLOCK_SIZE = 1 << BLOCK_BITS
MOST_IPV6_BLOCKS = 1_024
_IPV4 = 4
_LOW_BITS = BLOCK_SIZE - 1
_OWNER = "I"


class CellState(IntEnum):
    """What an address is, as the page colours it."""

    OUTSIDE = 0
    KEPT_BACK = 1
    FREE = 2
    PRIMARY = 3
    HELD = 4
    POD = 5
    RELEASING = 6
    QUARANTINED = 7
    DRAINING = 8

    @property
    def words(self) -> str:
        """The state for people."""
        return _WORDS[self]


_WORDS = {
    CellState.OUTSIDE: "outside the subnet",
    CellState.KEPT_BACK: "kept back",
    CellState.FREE: "free",
    CellState.PRIMARY: "primary of a node",
    CellState.HELD: "held by a node",
    CellState.POD: "on a pod",
    CellState.RELEASING: "being released",
    CellState.QUARANTINED: "in quarantine",
    CellState.DRAINING: "of a range that drains",
}


class MapRange(Struct, frozen=True):
    """One range of a subnet: its first and last address as numbers, the gateway, and whether it drains."""

    network: IPNetwork
    gateway: int | None
    is_draining: bool

    @property
    def first(self) -> int:
        """Its network address."""
        return int(self.network.network_address)

    @property
    def last(self) -> int:
        """Its last address."""
        return int(self.network.broadcast_address)


def map_range(cidr: str, gateway: str = "", *, is_draining: bool = False) -> MapRange | None:
    """A range as objects state it; None for what is not one."""
    try:
        network = parse_network(cidr)
    except InvalidInput:
        return None
    kind = IPv4Address if network.version == _IPV4 else IPv6Address
    try:
        gateway_number = int(kind(gateway)) if gateway else None
    except ValueError:
        gateway_number = None
    return MapRange(network, gateway_number, is_draining)


class MapSegment(Struct, frozen=True):
    """Blocks in a row: the number of the first one, its base (address over 256), and how many."""

    index: int
    base: int
    count: int


class MapCell(Struct, frozen=True):
    """One address."""

    state: CellState
    owner: int


class _UsedBlock:
    """The addresses of a block that are in use; 0 is one that is not."""

    __slots__ = ("count", "owners", "states")

    def __init__(self) -> None:
        self.states = bytearray(BLOCK_SIZE)
        self.owners = array(_OWNER, bytes(BLOCK_SIZE * array(_OWNER).itemsize))
        self.count = 0


class RenderedBlocks(Struct, frozen=True):
    """Blocks for the page: states, owners as numbers into `owners_used`, and the first address of each."""

    cells: str
    owners: str
    owners_used: tuple[int, ...]
    bases: tuple[str, ...]


class SubnetMap:
    """The addresses of one subnet. An owner is a number that the caller gives, 1 or more."""

    def __init__(self) -> None:
        self.ranges: tuple[MapRange, ...] = ()
        self.kept_back: frozenset[int] = frozenset()
        """What the subnet's definition keeps back beside networks, last addresses and gateways."""
        self._blocks: dict[int, _UsedBlock] = {}
        self._segments: tuple[MapSegment, ...] | None = None

    @property
    def family(self) -> int:
        """4 or 6."""
        return self.ranges[0].network.version if self.ranges else _IPV4

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it."""
        return not self.ranges and not self._blocks

    def set_ranges(self, ranges: tuple[MapRange, ...], kept_back: frozenset[int]) -> bool:
        """State the ranges. Returns whether they are others than before."""
        if (ranges, kept_back) == (self.ranges, self.kept_back):
            return False
        self.ranges, self.kept_back, self._segments = ranges, kept_back, None
        return True

    def put(self, address: int, state: CellState, owner: int) -> int:
        """Record an address in use. Returns the base of its block."""
        base = address >> BLOCK_BITS
        block = self._blocks.get(base)
        if block is None:
            block = self._blocks[base] = _UsedBlock()
            self._segments = None if self.family != _IPV4 else self._segments
        cell = address & _LOW_BITS
        block.count += not block.states[cell]
        block.states[cell], block.owners[cell] = state, owner
        return base

    def remove(self, address: int, owner: int) -> int | None:
        """Record that an owner has an address no more. Returns the base of its block; None if it was another's."""
        base, cell = address >> BLOCK_BITS, address & _LOW_BITS
        block = self._blocks.get(base)
        if block is None or not block.states[cell] or block.owners[cell] != owner:
            return None
        block.states[cell], block.owners[cell] = 0, 0
        block.count -= 1
        if not block.count:
            del self._blocks[base]
            self._segments = None if self.family != _IPV4 else self._segments
        return base

    def cell(self, address: int) -> MapCell:
        """What an address is."""
        block = self._blocks.get(address >> BLOCK_BITS)
        if block is not None and (state := block.states[address & _LOW_BITS]):
            return MapCell(CellState(state), block.owners[address & _LOW_BITS])
        return MapCell(CellState(self._unused(address >> BLOCK_BITS)[address & _LOW_BITS]), 0)

    def has(self, address: int) -> bool:
        """Whether an address is in use."""
        block = self._blocks.get(address >> BLOCK_BITS)
        return block is not None and bool(block.states[address & _LOW_BITS])

    def holds(self, address: int, version: int) -> bool:
        """Whether an address is in one of the ranges."""
        return any(
            each.network.version == version and each.first <= address <= each.last for each in self.ranges
        )

    # Blocks by their number

    @property
    def block_count(self) -> int:
        """How many blocks there are."""
        segments = self._numbered()
        return segments[-1].index + segments[-1].count if segments else 0

    def index_of(self, base: int) -> int | None:
        """The number of a block; None for one that has none."""
        for segment in self._numbered():
            if segment.base <= base < segment.base + segment.count:
                return segment.index + base - segment.base
        return None

    def render(self, first: int, count: int, on_pods: frozenset[int]) -> RenderedBlocks:
        """So many blocks from a number on, as far as there are; held addresses that pods have are told apart."""
        cells, owners = bytearray(), array("H")
        numbers: dict[int, int] = {0: 0}
        bases = list(self._bases(first, count))
        by_base: dict[int, list[int]] = {}
        for address in on_pods:
            by_base.setdefault(address >> BLOCK_BITS, []).append(address & _LOW_BITS)
        for base in bases:
            block = self._blocks.get(base)
            if block is None:
                cells += self._unused(base)
                owners.frombytes(bytes(2 * BLOCK_SIZE))
                continue
            states = _laid_over(self._unused(base), block.states)
            for cell in by_base.get(base, ()):
                if states[cell] in {CellState.HELD, CellState.RELEASING}:
                    states[cell] = CellState.POD
            cells += states
            for owner in dict.fromkeys(block.owners):
                numbers.setdefault(owner, len(numbers))
            owners.extend(map(numbers.__getitem__, block.owners))
        return RenderedBlocks(
            cells=b64encode(cells).decode(),
            owners=b64encode(_little_endian(owners)).decode(),
            owners_used=tuple(numbers)[1:],
            bases=tuple(self.base_text(base) for base in bases),
        )

    def usage(self, first: int, count: int) -> Iterator[tuple[str, int]]:
        """So many blocks from a number on: the first address of each, and how many addresses in it are in use."""
        for base in self._bases(first, count):
            block = self._blocks.get(base)
            yield self.base_text(base), block.count if block else 0

    def address_text(self, address: int) -> str:
        """An address as people write it."""
        return str((IPv4Address if self.family == _IPV4 else IPv6Address)(address))

    def base_text(self, base: int) -> str:
        """The first address of a block."""
        return self.address_text(base << BLOCK_BITS)

    def _bases(self, first: int, count: int) -> Iterator[int]:
        segments = self._numbered()
        for index in range(first, min(first + count, self.block_count)):
            at = bisect_right(segments, index, key=lambda each: each.index) - 1
            yield segments[at].base + index - segments[at].index

    def _numbered(self) -> tuple[MapSegment, ...]:
        if self._segments is None:
            self._segments = tuple(_number(self._wanted()))
        return self._segments

    def _wanted(self) -> Iterator[tuple[int, int]]:
        """First and last base of each range."""
        for each in self.ranges:
            first, last = each.first >> BLOCK_BITS, each.last >> BLOCK_BITS
            if each.network.version != _IPV4:
                used = (base for base in self._blocks if first <= base <= last)
                last = min(max(used, default=first), first + MOST_IPV6_BLOCKS - 1)
            yield first, last

    def _unused(self, base: int) -> bytearray:
        """The states of a block in which nothing is in use."""
        start = base << BLOCK_BITS
        states = bytearray(BLOCK_SIZE)
        for each in self.ranges:
            first, last = max(each.first, start), min(each.last, start + _LOW_BITS)
            if first > last:
                continue
            state = CellState.DRAINING if each.is_draining else CellState.FREE
            states[first - start : last - start + 1] = bytes([state]) * (last - first + 1)
            for special in (each.first, each.last, each.gateway):
                if special is not None and first <= special <= last:
                    states[special - start] = CellState.KEPT_BACK
        for address in self.kept_back:
            if address >> BLOCK_BITS == base and states[address & _LOW_BITS]:
                states[address & _LOW_BITS] = CellState.KEPT_BACK
        return states


def _laid_over(unused: bytearray, used: bytearray) -> bytearray:
    """The states in use, and beside them the others. Most blocks are of one state where nothing is in use."""
    if unused.count(unused[0]) == BLOCK_SIZE:
        return used.replace(b"\0", bytes(unused[:1]))
    return bytearray(state or free for state, free in zip(used, unused, strict=True))


def _number(wanted: Iterable[tuple[int, int]]) -> Iterator[MapSegment]:
    """Blocks one range after the other, each block once."""
    index, taken = 0, set[int]()
    for first, last in wanted:
        if first in taken:
            continue  # ranges that are smaller than a block; larger ones begin a block of their own
        taken.add(first)
        yield MapSegment(index, first, last - first + 1)
        index += last - first + 1


def _little_endian(owners: "array[int]") -> bytes:
    swapped = array("H", owners)
    if memoryview(b"\x01\x00").cast("H")[0] != 1:
        swapped.byteswap()
    return swapped.tobytes()
