"""What a range of an IPAM configuration means: a network, and which of its addresses may be handed out.

The network and the last address are never handed out, in either family, nor is the gateway; start, end and excludes
take away more (design W15). What remains is kept as intervals of offsets from the network address, the same numbers
an IPPool has for keys, so that they are exact for any size and "lowest free" never scans what is taken.

Texts are read as Whereabouts reads them, because existing configurations must keep working: host bits are dropped,
leading zeroes of IPv4 octets too (but an exclude with such is refused), and a start or end that cannot be used is
ignored. Whatever is ignored is said in a warning.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

from msgspec import Struct

from podtide.core.address_set import AddressSet
from podtide.core.errors import InvalidRange, MixedFamilies
from podtide.core.intervals import Interval, absent, without

IPAddress: TypeAlias = IPv4Address | IPv6Address
IPNetwork: TypeAlias = IPv4Network | IPv6Network

NEVER_HANDED_OUT = 2
"""How many addresses every network keeps back: its first and its last, in both families (design W19)."""

_LEADING_ZEROES = re.compile(r"(?<![0-9])0+(?=[0-9])")
_PREFIX_LENGTH = re.compile(r"[0-9]{1,3}")


class AddressRange(Struct, frozen=True):
    """The addresses of `network` that may be handed out, as sorted, disjoint intervals of offsets from its address."""

    network: IPNetwork
    intervals: tuple[Interval, ...]

    def __str__(self) -> str:
        return str(self.network)

    @property
    def size(self) -> int:
        """How many addresses the network has, assignable or not."""
        return self.network.num_addresses

    @property
    def capacity(self) -> int:
        """How many addresses may be handed out."""
        return sum(interval.last - interval.first + 1 for interval in self.intervals)

    def offset(self, address: IPAddress) -> int:
        """How far the address lies from the network address; InvalidRange when it is not in the network."""
        if address.version != self.network.version:
            raise MixedFamilies(
                f"{address} has no offset in {self}: one is IPv{address.version}, the other IPv{self.network.version}"
            )
        offset = int(address) - int(self.network.network_address)
        if not 0 <= offset < self.size:
            raise InvalidRange(f"{address} has no offset in {self}: it is outside of that network")
        return offset

    def address(self, offset: int) -> IPAddress:
        """The address at an offset; InvalidRange when it is not in the network."""
        if not 0 <= offset < self.size:
            raise InvalidRange(f"offset {offset} is outside of {self}: it has offsets 0 to {self.size - 1}")
        return self.network.network_address + offset

    def __contains__(self, address: IPAddress) -> bool:
        """Whether the address may be handed out."""
        if address not in self.network:
            return False
        offset = self.offset(address)
        return any(first <= offset <= last for first, last in self.intervals)

    def taken(self, addresses: Iterable[IPAddress]) -> AddressSet:
        """The offsets of those addresses that lie in the network, as the set `lowest_free` asks for."""
        return AddressSet(
            self.size, (self.offset(address) for address in addresses if address in self.network)
        )

    def free(self, taken: AddressSet) -> Iterator[int]:
        """The offsets that may be handed out and are not taken, lowest first, each found when asked for."""
        return absent(self.intervals, taken)

    def lowest_free(self, taken: AddressSet) -> int | None:
        """The lowest offset that may be handed out and is not taken; None when the range is full."""
        return next(self.free(taken), None)

    def part(self, network: IPNetwork) -> "AddressRange":
        """What this range allows within one of its slices, whose own first and last address are not handed out."""
        base, last_usable = self.offset(network.network_address), network.num_addresses - 2
        clipped = (
            Interval(max(first - base, 1), min(last - base, last_usable)) for first, last in self.intervals
        )
        return AddressRange(
            network, tuple(interval for interval in clipped if interval.first <= interval.last)
        )


class ParsedRange(Struct, frozen=True):
    """A range, and one line for each part of its configuration that was ignored."""

    range: AddressRange
    warnings: tuple[str, ...]


def parse_range(
    text: str,
    *,
    start: str | None = None,
    end: str | None = None,
    excludes: Iterable[str] = (),
    gateway: str | None = None,
) -> ParsedRange:
    """Parse `range`, `range_start`, `range_end`, `exclude` and `gateway` of an IPAM configuration.

    InvalidRange when they are ambiguous or contradict each other, MixedFamilies for ends of two families.
    """
    warnings: list[str] = []
    network, first, last = _split(text, start, end, warnings)
    if network.num_addresses <= NEVER_HANDED_OUT:
        raise InvalidRange(
            f"range {network} has no usable address, as its first and its last are never handed out: "
            f"use /{network.max_prefixlen - 2} or wider"
        )
    bounds = _bounds(network, first, last, warnings)
    holes = _excluded(network, excludes, warnings)
    if gateway:
        with _reading("gateway", "write the address of a router"):
            hole = overlap(network, _host(parse_address(gateway)))
        if hole is not None:
            holes.append(hole)
    intervals = without([bounds], holes)
    if not intervals:
        warnings.append(f"range {network}: excludes and gateway leave no address that could be handed out")
    return ParsedRange(AddressRange(network, intervals), tuple(warnings))


@lru_cache(maxsize=1024)
def parse_address(text: str) -> IPAddress:
    """An IPv4 address (leading zeroes of octets dropped) or an IPv6 address without zone."""
    try:
        if ":" in text and "%" not in text:
            return IPv6Address(text)
        return IPv4Address(_LEADING_ZEROES.sub("", text))
    except AddressValueError:
        raise InvalidRange(f"{text!r} is not a valid IP address such as 10.0.0.5 or fd00::5") from None


@lru_cache(maxsize=256)
def parse_network(text: str) -> IPNetwork:
    """A CIDR, host bits dropped: 192.168.2.225/28 is 192.168.2.224/28."""
    return _address_and_network(text)[1]


def contains(networks: Iterable[IPNetwork], address: str) -> bool:
    """Whether an address is in one of the networks."""
    parsed = parse_address(address)
    return any(parsed in network for network in networks)


def network_at(address: IPAddress, prefix_length: int) -> IPNetwork:
    """The network of that prefix length which holds the address."""
    if isinstance(address, IPv4Address):
        return IPv4Network((int(address), prefix_length), strict=False)
    return IPv6Network((int(address), prefix_length), strict=False)


def overlap(network: IPNetwork, other: IPNetwork) -> Interval | None:
    """The offsets in `network` of the addresses it shares with `other`; None when they share none."""
    if other.version != network.version:
        return None
    base = int(network.network_address)
    first = max(int(other.network_address) - base, 0)
    last = min(int(other.broadcast_address) - base, network.num_addresses - 1)
    return Interval(first, last) if first <= last else None


def _address_and_network(text: str) -> tuple[IPAddress, IPNetwork]:
    head, slash, length = text.partition("/")
    address = parse_address(head)
    if not slash:
        raise InvalidRange(f"{text!r} has no prefix length (as {address}/{address.max_prefixlen - 8} has)")
    if not _PREFIX_LENGTH.fullmatch(length) or int(length) > address.max_prefixlen:
        raise InvalidRange(
            f"{text!r} has no prefix length of IPv{address.version} (/0 to /{address.max_prefixlen})"
        )
    return address, network_at(address, int(length))


@contextmanager
def _reading(key: str, advice: str) -> Iterator[None]:
    """A context in which errors name the key they are about, and what to write there."""
    try:
        yield
    except InvalidRange as error:
        raise InvalidRange(f"{key}: {error}; {advice}") from None


def _split(
    text: str, start: str | None, end: str | None, warnings: list[str]
) -> tuple[IPNetwork, IPAddress | None, IPAddress | None]:
    """The network and the two ends, from whichever of the two forms the range has."""
    first_text, dash, last_text = text.partition("-")
    with _reading("range", "write a CIDR like 10.0.0.0/24, or first-last/length like 10.0.0.5-10.0.0.25/24"):
        first = parse_address(first_text) if dash else None
        last, network = _address_and_network(last_text if dash else text)
    if first is None:
        return (
            network,
            _end("range_start", start, network, warnings),
            _end("range_end", end, network, warnings),
        )
    if first.version != last.version:
        raise MixedFamilies(
            f"range {text} begins in IPv{first.version} and ends in IPv{last.version}: use one family"
        )
    if first not in network:
        raise InvalidRange(
            f"range {text} begins outside of {network}, where it ends: both ends must be in it"
        )
    warnings.extend(
        f"{key} {value} is ignored: range {text} names its own ends"
        for key, value in (("range_start", start), ("range_end", end))
        if value
    )
    return network, first, last


def _end(key: str, text: str | None, network: IPNetwork, warnings: list[str]) -> IPAddress | None:
    """A range_start or range_end; one that cannot be read counts as absent, as in Whereabouts."""
    if not text:
        return None
    try:
        address = parse_address(text)
    except InvalidRange as error:
        warnings.append(f"{key} is ignored: {error}")
        return None
    if address.version != network.version:
        raise MixedFamilies(
            f"{key} {address} is IPv{address.version}, but range {network} is IPv{network.version}: use one family"
        )
    return address


def _bounds(
    network: IPNetwork, start: IPAddress | None, end: IPAddress | None, warnings: list[str]
) -> Interval:
    """The offsets between start and end, each as far as it can be used.

    A start at the network address and an end at the last one say "from the beginning" and "to the end": no warning.
    """
    base = int(network.network_address)
    first, last = 1, network.num_addresses - 2
    if start is not None:
        if 0 <= int(start) - base <= last:
            first = max(first, int(start) - base)
        else:
            warnings.append(
                f"the start {start} is ignored: {network} can start at {network[first]} to {network[last]}"
            )
    if end is not None:
        if first <= int(end) - base <= last + 1:
            last = min(last, int(end) - base)
        else:
            warnings.append(
                f"the end {end} is ignored: {network} can end at {network[first]} to {network[last]}"
            )
    return Interval(first, last)


def _excluded(network: IPNetwork, excludes: Iterable[str], warnings: list[str]) -> list[Interval]:
    """The offsets that excludes take away from the network."""
    holes: list[Interval] = []
    for text in excludes:
        _refuse_leading_zeroes(text)
        with _reading("exclude", "write an address, or a CIDR like 10.0.0.0/28"):
            excluded = parse_network(text) if "/" in text else _host(parse_address(text))
        hole = overlap(network, excluded)
        if hole is None:
            warnings.append(f"exclude {text} is ignored: nothing of it is in {network}")
        else:
            holes.append(hole)
    return holes


def _refuse_leading_zeroes(text: str) -> None:
    """Whereabouts drops them from a range and its ends, but fails every ADD of a network that excludes such a one."""
    plain = _LEADING_ZEROES.sub("", text)
    if ":" not in text and plain != text:
        raise InvalidRange(
            f"exclude: {text!r} has leading zeroes, which some programs read as octal: write {plain}"
        )


def _host(address: IPAddress) -> IPNetwork:
    return network_at(address, address.max_prefixlen)
