"""Where a subnet's addresses are: which are usable, and which number in which chunk each has.

The addresses of the subnet's CIDRs are numbered one CIDR after the other, each beginning a new chunk, so that a subnet can
grow without renumbering anything. What is never given out (a CIDR's network and last address, the gateway, what the
owner keeps back) is a handful of holes in the numbering: a /8 is described as quickly as a /29, and its capacity is
arithmetic.

A subnet has at most 2^53 addresses, the most that every reader of JSON can count to (DESIGN.md "IPv6"): of a wider IPv6 CIDR
the first ones are used. So every number also fits the integers of any database.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv6Address
from itertools import pairwise
from typing import NamedTuple

from podtide.core.chunks import CHUNK_SIZE, mask_between, positions
from podtide.core.errors import InvalidRange, MixedFamilies
from podtide.core.intervals import Interval, without
from podtide.core.ranges import NEVER_HANDED_OUT, IPAddress, IPNetwork, parse_address, parse_network

MOST_ADDRESSES = 2**53
_IPV4 = 4


class Place(NamedTuple):
    """An address by number: its chunk, and its position in it."""

    chunk: int
    position: int


class _Block(NamedTuple):
    """A CIDR in the numbering: its first chunk, and how many of its addresses are numbered."""

    network: IPNetwork
    first_chunk: int
    size: int

    @property
    def usable(self) -> Interval:
        """All but the first and the last address; of a CIDR that is not used to its end, all but the first."""
        start = self.first_chunk * CHUNK_SIZE
        is_whole = self.size == self.network.num_addresses
        return Interval(start + 1, start + self.size - (2 if is_whole else 1))


class SubnetLayout:
    """The numbered addresses of a subnet. `gateway` None is the first usable address of the first CIDR."""

    def __init__(
        self, cidrs: Sequence[str], gateway: str | None, keep_back: Iterable[str], keep_back_first: int
    ) -> None:
        self._blocks = tuple(_number(cidrs))
        self._first_chunks = [block.first_chunk for block in self._blocks]
        self.cidrs = tuple(str(block.network) for block in self._blocks)
        self.gateway = (
            self._blocks[0].network.network_address + 1 if gateway is None else parse_address(gateway)
        )
        self.keep_back = tuple(sorted({parse_address(text) for text in keep_back}, key=int))
        not_the_gateway = without([block.usable for block in self._blocks], self._holes([self.gateway]))
        self._usable = without(
            not_the_gateway, [*self._holes(self.keep_back), *_first(keep_back_first, not_the_gateway)]
        )
        self._firsts = [interval.first for interval in self._usable]
        self.capacity = sum(last - first + 1 for first, last in self._usable)
        if not self.capacity:
            raise InvalidRange(
                f"subnet {self} has no address to give: its first and last, the gateway and what is kept back are all "
                "it has; use a wider CIDR, or keep fewer back"
            )

    def __str__(self) -> str:
        return ", ".join(self.cidrs)

    def mask(self, chunk: int) -> int:
        """The usable addresses of a chunk."""
        start, mask = chunk * CHUNK_SIZE, 0
        for first, last in self._usable[self._at(start) :]:
            if first >= start + CHUNK_SIZE:
                break
            mask |= mask_between(first - start, last - start)
        return mask

    def next_chunk(self, chunk: int) -> int | None:
        """The first chunk from this one on that has usable addresses; None when there is none."""
        start = chunk * CHUNK_SIZE
        for first, last in self._usable[self._at(start) :]:
            if last >= start:
                return max(first, start) // CHUNK_SIZE
        return None

    def usable_from(self, chunk: int) -> int:
        """How many usable addresses there are in this chunk and all after it."""
        start = chunk * CHUNK_SIZE
        return sum(last - max(first, start) + 1 for first, last in self._usable if last >= start)

    def addresses(self, chunk: int, mask: int) -> Iterator[str]:
        """The addresses of a chunk that the mask means, as text, lowest first."""
        block = self._block(chunk)
        start = _first_address(block) + (chunk - block.first_chunk) * CHUNK_SIZE
        if block.network.version == _IPV4:
            # No chunk spans two /24s. This is several times as quick as IPv4Address, and grants have many addresses.
            head = f"{start >> 24}.{start >> 16 & 255}.{start >> 8 & 255}."
            return (f"{head}{(start & 255) + position}" for position in positions(mask))
        return (str(IPv6Address(start + position)) for position in positions(mask))

    def address(self, place: Place) -> str:
        """The address at a place, as text."""
        return next(self.addresses(place.chunk, 1 << place.position))

    def cidr(self, place: Place) -> str:
        """The CIDR that the address at a place is in."""
        return str(self._block(place.chunk).network)

    def _block(self, chunk: int) -> _Block:
        return self._blocks[bisect_right(self._first_chunks, chunk) - 1]

    def _at(self, number: int) -> int:
        """Where in the usable intervals to begin to look for a number."""
        return max(bisect_right(self._firsts, number) - 1, 0)

    def _holes(self, addresses: Iterable[IPAddress]) -> Iterator[Interval]:
        blocks = sorted(self._blocks, key=_first_address)
        for address in addresses:
            block = blocks[bisect_right(blocks, int(address), key=_first_address) - 1]
            if address not in block.network:
                raise InvalidRange(f"{address} is not in subnet {self}: name an address of the subnet")
            number = block.first_chunk * CHUNK_SIZE + int(address) - _first_address(block)
            yield Interval(number, number)


def _first_address(block: _Block) -> int:
    return int(block.network.network_address)


def first_overlap(cidrs: Iterable[str]) -> tuple[str, str] | None:
    """Two CIDRs that share an address; None when there are none."""
    # One of two CIDRs that overlap contains the other, so in this order some overlap is between neighbours.
    networks = sorted(
        map(parse_network, cidrs), key=lambda network: (network.version, int(network[0]), network.prefixlen)
    )
    for one, other in pairwise(networks):
        if one.version == other.version and one.overlaps(other):
            return str(one), str(other)
    return None


def _number(cidrs: Sequence[str]) -> Iterator[_Block]:
    """The CIDRs one after the other, each beginning a new chunk."""
    if not cidrs:
        raise InvalidRange("a subnet without a CIDR has no addresses: give at least one such as 10.0.0.0/16")
    networks = [_exact_network(text) for text in cidrs]
    if twins := first_overlap(cidrs):
        raise InvalidRange(f"{twins[0]} and {twins[1]} of one subnet overlap: give each address once")
    first_chunk = 0
    for network in networks:
        if network.version != networks[0].version:
            raise MixedFamilies(f"{networks[0]} and {network} are of two families: make a subnet for each")
        size = min(network.num_addresses, MOST_ADDRESSES - first_chunk * CHUNK_SIZE)
        if size <= 0:
            raise InvalidRange(
                f"{network} has no place in a subnet that has 2^53 addresses already, the most one can have: make another subnet"
            )
        yield _Block(network, first_chunk, size)
        first_chunk += -(-size // CHUNK_SIZE)


def _exact_network(text: str) -> IPNetwork:
    """A CIDR that names its own network address: a subnet is stated once, so a slip is better refused than guessed."""
    network = parse_network(text)
    if parse_address(text.partition("/")[0]) != network.network_address:
        raise InvalidRange(f"{text} begins within a network: write {network}")
    if network.num_addresses <= NEVER_HANDED_OUT:
        raise InvalidRange(
            f"{text} has no usable address, as its first and its last are never given: "
            f"use /{network.max_prefixlen - 2} or wider"
        )
    return network


def _first(count: int, intervals: Iterable[Interval]) -> Iterator[Interval]:
    """The `count` lowest numbers of the intervals."""
    for first, last in intervals:
        if count <= 0:
            return
        size = min(count, last - first + 1)
        yield Interval(first, first + size - 1)
        count -= size
