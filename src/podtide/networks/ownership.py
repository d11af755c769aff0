"""Which network a pool or a reservation belongs to, found from the object itself.

The names of a network's objects follow from the network (`network`). A list of all objects of a cluster needs the other
direction, and there names are ambiguous: `a-b-10.0.0.0-24` is the slice of node `b` in network `a`, or of node
`a-b` in an unnamed one. Where two of the known networks are possible, the answer is none: nothing is concluded from a
guess.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, IPNetwork, parse_network
from podtide.networks.network import Network, NetworkRange
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NETWORK_ANNOTATION
from podtide.resources.names import InvalidName, Naming, normalise_address, normalise_range, reserved_address
from podtide.resources.node_slice_pool import NodeSlicePool


class PoolNetwork(Struct, frozen=True, kw_only=True):
    """The network that a pool belongs to."""

    network: str
    """Its key. Unnamed networks can share a pool; then this is the first of theirs."""
    network_name: str
    """What its reservations are named by."""
    guarded: bool
    """Whether every configuration of the pool has its addresses reserved."""


class KnownNetworks:
    """The networks of a cluster."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._classic: dict[str, list[Network]] = {}
        self._slices: dict[str, list[Network]] = {}
        self._sliced: list[tuple[NetworkRange, Network]] = []
        self._by_name: dict[str, list[IPNetwork]] = {}
        for network in networks:
            for item in network.ranges:
                self._by_name.setdefault(item.network_name, []).append(item.addresses.network)
                if item.slice_size is None:
                    self._classic.setdefault(item.classic_pool_name(), []).append(network)
                    continue
                self._sliced.append((item, network))
                for name in node_slice_pool_names(item):
                    self._slices.setdefault(name, []).append(network)

    def of_pool(self, pool: IPPool) -> PoolNetwork | None:
        """The network of an IPPool; None when no network, or more than one, has such a pool."""
        return _single(self._claims(pool))

    def of_slice_pool(self, name: str) -> PoolNetwork | None:
        """The network of the NodeSlicePool with that name."""
        return _single(self._slices.get(name, ()))

    def of_reservation(self, name: str) -> tuple[str, IPAddress] | None:
        """The `network_name` and the address in a reservation's name; None when no single network fits."""
        found = [
            (network_name, address)
            for network_name, ranges in self._by_name.items()
            if (address := reserved_address(network_name, name)) is not None
            and any(address in network for network in ranges)
        ]
        return found[0] if len(found) == 1 else None

    def _claims(self, pool: IPPool) -> Iterable[Network]:
        name = pool.metadata.name
        if marked := pool.metadata.annotations.get(NETWORK_ANNOTATION):
            return self._slices.get(marked, ())
        if classic := self._classic.get(name):
            return classic
        range_ = pool_range(pool)
        return () if range_ is None else self._slices_named(name, range_)

    def _slices_named(self, name: str, slice_: IPNetwork) -> Iterator[Network]:
        """The networks that have this slice and would give a node's pool of it this name."""
        shipped_end = f"-{normalise_range(str(slice_))}"
        for item, network in self._sliced:
            slicing = item.slicing
            if slicing is None or slicing.index(slice_) is None:
                continue
            shipped_start = f"{item.network_name}-" if item.network_name else ""
            is_shipped = name.endswith(shipped_end) and name.startswith(shipped_start)
            if is_shipped or name.startswith(f"{item.node_slice_pool_name()}-"):
                yield network


def node_slice_pool_names(item: NetworkRange, preferred: Naming = Naming.PODTIDE) -> list[str]:
    """The names that the NodeSlicePool of a range can have, each once: by the preferred rule, then by the other.

    Whereabouts uses the configuration's name, which need not be a valid name in Kubernetes: then no such object
    exists.
    """
    names = []
    for naming in sorted(Naming, key=lambda each: each is not preferred):
        with suppress(InvalidName):
            names.append(item.node_slice_pool_name(naming))
    return list(dict.fromkeys(names))


def classic_pool_names(ranges: Iterable[NetworkRange]) -> Iterator[str]:
    """The names of the IPPools that all nodes share, or shared before their ranges were sliced."""
    for item in ranges:
        with suppress(InvalidName):  # a sliced range can have a name too long for a pool that it never had
            yield item.classic_pool_name()


def pool_range(pool: IPPool | NodeSlicePool) -> IPNetwork | None:
    """The range that an object states; None when it is invalid."""
    try:
        return parse_network(pool.spec.range)
    except InvalidInput:
        return None


def may_be_reservation_of(name: str, address: IPAddress) -> bool:
    """Whether a reservation of that name can be for the address, in any network."""
    bare = normalise_address(address)
    return name == bare or name.endswith(f"-{bare}")


def _single(networks: Iterable[Network]) -> PoolNetwork | None:
    claims = list(networks)
    names = {item.network_name for network in claims for item in network.ranges}
    if len(names) != 1:
        return None
    return PoolNetwork(
        network=min(network.key for network in claims),
        network_name=names.pop(),
        guarded=all(network.guarded for network in claims),
    )
