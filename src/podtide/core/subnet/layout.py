"""Where a subnet's addresses are: which are usable, and which number in which chunk each has.

The addresses of the subnet's CIDRs are numbered one CIDR after the other, each beginning a new chunk, so that a subnet can
grow, and lose a CIDR, without renumbering anything. What is never given out (a CIDR's network and last address, its
gateway, what the owner keeps back) is a handful of holes in the numbering: a /8 is described as quickly as a /29, and its
capacity is arithmetic.

Each CIDR has a gateway of its own, because a pod reaches nothing through one that is outside its prefix. A CIDR that drains
keeps its numbers, for nodes hold some of them, and gives no more: it is not in the capacity.

A subnet has at most 2^53 addresses, the most that every reader of JSON can count to (design D14): of a wider IPv6 CIDR
the first ones are used. So every number also fits the integers of any database.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from ipaddress import IPv6Address
from itertools import pairwise
from typing import NamedTuple

from podtide.core.errors import InvalidRange, MixedFamilies
from podtide.core.intervals import Interval, without
from podtide.core.ranges import NEVER_HANDED_OUT, IPAddress, IPNetwork, parse_address, parse_network
from podtide.core.subnet.chunks import CHUNK_SIZE, mask_between, positions

MOST_ADDRESSES = 2**53
_IPV4 = 4


class AddressPlace(NamedTuple):
    """An address's place in the numbering: its chunk, and its position in the chunk."""

    chunk: int
    position: int


class Block(NamedTuple):
    """A CIDR in the numbering: its first chunk, and how many of its addresses are numbered."""

    network: IPNetwork
    first_chunk: int
    size: int
    gateway: str
    """"" where it has none."""
    is_draining: bool
    cidr: str
    """As text: every grant names it, and to write it out takes as long as half of a grant."""

    @property
    def last_chunk(self) -> int:
        """The last chunk with addresses of it."""
        return self.first_chunk + (self.size - 1) // CHUNK_SIZE

    @property
    def chunks(self) -> range:
        """All chunks with addresses of it."""
        return range(self.first_chunk, self.last_chunk + 1)

    @property
    def numbers(self) -> Interval:
        """The numbers of all its addresses."""
        start = self.first_chunk * CHUNK_SIZE
        return Interval(start, start + self.size - 1)

    @property
    def usable(self) -> Interval:
        """All but the first and the last address; of a CIDR that is not used to its end, all but the first."""
        first, last = self.numbers
        is_whole = self.size == self.network.num_addresses
        return Interval(first + 1, last - 1 if is_whole else last)


class SubnetLayout:
    """The numbered addresses of a subnet.

    `gateways` has one for each CIDR, "" for none (see `choose_gateways`). `first_chunks` says where CIDRs begin that have
    been numbered before; those after them follow.
    """

    def __init__(  # noqa: PLR0913 - what a subnet is
        self,
        cidrs: Sequence[str],
        gateways: Sequence[str],
        keep_back: Iterable[str] = (),
        keep_back_first: int = 0,
        *,
        first_chunks: Sequence[int] = (),
        draining: Collection[str] = (),
    ) -> None:
        self.blocks = tuple(_number(cidrs, gateways, first_chunks, draining))
        self._first_chunks = [block.first_chunk for block in self.blocks]
        self.cidrs = tuple(block.cidr for block in self.blocks)
        self.keep_back = tuple(sorted({parse_address(text) for text in keep_back}, key=int))
        gateways_given = [parse_address(block.gateway) for block in self.blocks if block.gateway]
        no_gateways = without([block.usable for block in self.blocks], self._holes(gateways_given))
        self._kept_first = tuple(_first(keep_back_first, no_gateways))
        self.usable = without(no_gateways, [*self._holes(self.keep_back), *self._kept_first])
        """The numbers that can be given, those of CIDRs that drain among them."""
        self._firsts = [interval.first for interval in self.usable]
        self.capacity = sum(self.usable_in(block) for block in self.blocks if not block.is_draining)
        """How many addresses can be given: none of CIDRs that drain."""
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
        for first, last in self.usable[self._at(start) :]:
            if first >= start + CHUNK_SIZE:
                break
            mask |= mask_between(first - start, last - start)
        return mask

    def next_chunk(self, block: Block, chunk: int) -> int | None:
        """The block's first chunk from this one on that has usable addresses; None when there is none."""
        start = chunk * CHUNK_SIZE
        for first, last in self.usable[self._at(start) :]:
            if last >= start:
                found = max(first, start) // CHUNK_SIZE
                return found if found <= block.last_chunk else None
        return None

    def usable_in(self, block: Block, from_chunk: int = 0) -> int:
        """How many usable addresses a block has, in this chunk and all after it."""
        least, most = max(block.numbers.first, from_chunk * CHUNK_SIZE), block.numbers.last
        return sum(max(0, min(last, most) - max(first, least) + 1) for first, last in self.usable)

    def kept_first_in(self, block: Block) -> int:
        """How many of the lowest addresses that are kept back are in a block."""
        least, most = block.numbers
        return sum(last - first + 1 for first, last in self._kept_first if least <= first <= most)

    def addresses(self, chunk: int, mask: int) -> list[str]:
        """The addresses of a chunk that the mask means, as text, lowest first."""
        block = self.block(chunk)
        start = _first_address(block) + (chunk - block.first_chunk) * CHUNK_SIZE
        if block.network.version == _IPV4:
            # No chunk spans two /24s. This is several times as quick as IPv4Address, and grants have many addresses.
            head = f"{start >> 24}.{start >> 16 & 255}.{start >> 8 & 255}."
            last = start & 255
            return [f"{head}{last + position}" for position in positions(mask)]
        return [str(IPv6Address(start + position)) for position in positions(mask)]

    def address(self, place: AddressPlace) -> str:
        """The address at a place, as text."""
        return self.addresses(place.chunk, 1 << place.position)[0]

    def block(self, chunk: int) -> Block:
        """The CIDR that a chunk is in."""
        return self.blocks[bisect_right(self._first_chunks, chunk) - 1]

    def find(self, cidr: str) -> Block | None:
        """The CIDR of that text, if the subnet has it."""
        return next((block for block in self.blocks if block.cidr == cidr), None)

    def place(self, address: str) -> AddressPlace | None:
        """The place of an address; None for one that the subnet cannot give."""
        try:
            found = parse_address(address)
            (hole,) = self._holes([found])
        except InvalidRange:
            return None
        place = AddressPlace(*divmod(hole.first, CHUNK_SIZE))
        return place if self.mask(place.chunk) >> place.position & 1 else None

    def _at(self, number: int) -> int:
        """The index in the usable intervals from which to search for a number."""
        return max(bisect_right(self._firsts, number) - 1, 0)

    def _holes(self, addresses: Iterable[IPAddress]) -> Iterator[Interval]:
        blocks = sorted(self.blocks, key=_first_address)
        for address in addresses:
            block = blocks[bisect_right(blocks, int(address), key=_first_address) - 1]
            if address not in block.network:
                raise InvalidRange(f"{address} is not in subnet {self}: name an address of the subnet")
            number = block.first_chunk * CHUNK_SIZE + int(address) - _first_address(block)
            yield Interval(number, number)


def choose_gateways(cidrs: Sequence[str], named: Iterable[str] = ()) -> tuple[str, ...]:
    """A gateway for each CIDR: the one that was named and is in it, else its first usable address."""
    networks = [exact_network(text) for text in cidrs]
    gateways = {network: network.network_address + 1 for network in networks}
    taken: dict[IPNetwork, IPAddress] = {}
    for address in map(parse_address, named):
        network = next((network for network in networks if address in network), None)
        if network is None:
            raise InvalidRange(
                f"gateway {address} is in none of {', '.join(cidrs)}: a gateway is an address of the CIDR it is for"
            )
        if address == network.network_address or (
            network.version == _IPV4 and address == network.broadcast_address
        ):
            what = "broadcast" if address != network.network_address else "own"
            raise InvalidRange(
                f"gateway {address} is the {what} address of {network}: name another address of it"
            )
        if taken.setdefault(network, address) != address:
            raise InvalidRange(f"{network} has one gateway, and {taken[network]} and {address} were named")
        gateways[network] = address
    return tuple(str(gateways[network]) for network in networks)


def _first_address(block: Block) -> int:
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


def _number(
    cidrs: Sequence[str],
    gateways: Sequence[str],
    first_chunks: Sequence[int],
    draining: Collection[str],
) -> Iterator[Block]:
    """The CIDRs one after the other, each beginning a new chunk."""
    if not cidrs:
        raise InvalidRange("a subnet without a CIDR has no addresses: give at least one such as 10.0.0.0/16")
    networks = [exact_network(text) for text in cidrs]
    if twins := first_overlap(cidrs):
        raise InvalidRange(f"{twins[0]} and {twins[1]} of one subnet overlap: give each address once")
    following = 0
    for index, (network, gateway) in enumerate(zip(networks, gateways, strict=True)):
        if network.version != networks[0].version:
            raise MixedFamilies(f"{networks[0]} and {network} are of two families: make a subnet for each")
        first_chunk = first_chunks[index] if index < len(first_chunks) else following
        size = min(network.num_addresses, MOST_ADDRESSES - first_chunk * CHUNK_SIZE)
        if size <= 0:
            raise InvalidRange(
                f"{network} has no place in a subnet that has 2^53 addresses already, the most one can have: make another subnet"
            )
        cidr = str(network)
        block = Block(network, first_chunk, size, gateway, cidr in draining, cidr)
        following = block.last_chunk + 1
        yield block


def exact_network(text: str) -> IPNetwork:
    """A CIDR that names its own network address: a subnet is stated once, so a slip is better refused than guessed."""
    try:
        network = parse_network(text)
    except InvalidRange as error:
        raise InvalidRange(f"{error}; write a CIDR such as 10.1.0.0/24") from None
    if parse_address(text.partition("/")[0]) != network.network_address:
        raise InvalidRange(f"{text} is not the first address of its network: write {network}")
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
