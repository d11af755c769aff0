"""Which network a pool or a reservation belongs to, found from the object itself.

Going from a network to its objects is a matter of names (`network`). Whoever looks over all objects of a cluster goes
the other way, and there names are ambiguous: `a-b-10.0.0.0-24` is the slice of node `b` in network `a`, or of node
`a-b` in an unnamed one. Where the networks that are known leave two answers there is none: nothing is concluded from a
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
from podtide.resources.names import (
    InvalidName,
    Naming,
    normalise_address,
    normalise_range,
    reserved_address,
)


class PoolNetwork(Struct, frozen=True, kw_only=True):
    """The network that a pool is of."""

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
        """Whose an IPPool is; None when no network, or no single one, has such a pool."""
        return _single(self._claims(pool))

    def of_slice_pool(self, name: str) -> PoolNetwork | None:
        """Whose the NodeSlicePool of that name is."""
        return _single(self._slices.get(name, ()))

    def of_reservation(self, name: str) -> tuple[str, IPAddress] | None:
        """The `network_name` and the address that a reservation's name says; None when no single network fits."""
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
        """Networks that have this slice and could have named a node's pool of it so."""
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
    """What the NodeSlicePool of a range can be called, each name once: by the preferred rule, then by the other.

    Whereabouts goes by the configuration's name, which need not be one that Kubernetes takes. Then nobody made an
    object of that name.
    """
    names = []
    for naming in sorted(Naming, key=lambda each: each is not preferred):
        with suppress(InvalidName):
            names.append(item.node_slice_pool_name(naming))
    return list(dict.fromkeys(names))


def classic_pool_names(ranges: Iterable[NetworkRange]) -> Iterator[str]:
    """What the IPPools that all nodes share are called, or were when ranges that are cut now were not."""
    for item in ranges:
        with suppress(InvalidName):  # a sliced range can have a name too long for a pool that it never had
            yield item.classic_pool_name()


def pool_range(pool: IPPool) -> IPNetwork | None:
    """The range that an IPPool says it has; None when that is no range."""
    try:
        return parse_network(pool.spec.range)
    except InvalidInput:
        return None


def may_be_reservation_of(name: str, address: IPAddress) -> bool:
    """Whether a reservation of that name can be the address's, in whatever network."""
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
