"""Whether what is written of secondary networks fits together: the invariants of `core.audit.invariants`, for their objects.

A secondary network keeps three books: pools (which address is whose), reservations (the same once more, across pools
whose ranges overlap) and slices (which part of a range is which node's). A picture is what they say at one instant.

    1  No address is held twice in a network, nor in two guarded pools of one `network_name`; no two nodes' slices overlap.
    2  Every address held in a guarded pool is reserved for its holder; when nothing is under way, the reverse holds too.
    6  When nothing is under way, nothing is held for a pod that is gone.

Reservations are made before, and removed after, what they are for. So a reservation alone may belong to a call in
flight, but an address that is held and not reserved never is. And a pod whose network was cut anew may for a while have
its address in two pools: in the new one for its new sandbox, and in the old one until the old sandbox's DEL.
`audit_networks` checks what is true at every instant, `audit_settled_networks` what is true besides when nothing is
under way.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from podtide.core.audit.invariants import Violation
from podtide.core.networks.allocations import Allocation, is_same_holder
from podtide.core.ranges import IPAddress, IPNetwork, overlap

_Held: TypeAlias = tuple[str, Allocation]
"""A pool, and who has an address in it."""


class PoolView(Struct, frozen=True, kw_only=True):
    """An IPPool."""

    pool: str
    network: str
    """The key of its network; "" when no configuration tells, and then it is compared with no other."""
    range: IPNetwork
    holders: Mapping[IPAddress, Allocation]
    guarded_as: str | None = None
    """The `network_name` its addresses are reserved under, "" where it has none; None when they are not reserved."""
    node: str = ""
    """Whose slice it is; "" for a pool that all nodes share."""


class ReservationView(Struct, frozen=True, kw_only=True):
    """An OverlappingRangeIPReservation."""

    name: str
    guarded_as: str
    """The `network_name` it is made under."""
    address: IPAddress
    holder: Allocation


class SliceView(Struct, frozen=True, kw_only=True):
    """A slice that belongs to a node."""

    network: str
    node: str
    slice: IPNetwork


class NetworkPicture(Struct, frozen=True, kw_only=True):
    """The state of all secondary networks at one instant."""

    pools: tuple[PoolView, ...] = ()
    reservations: tuple[ReservationView, ...] = ()
    slices: tuple[SliceView, ...] = ()
    pods: Mapping[str, frozenset[str]] | None = None
    """Pods that live, as `namespace/name`, with the uids that sandboxes know them by; None when they were not read."""


def audit_networks(picture: NetworkPicture) -> tuple[Violation, ...]:
    """The violations of what must hold at any instant, in a stable order."""
    twice = (_twice(*each) for each in _held_twice(picture) if not _is_one_pods(*each))
    return tuple(sorted({*twice, *_overlapping(picture), *_unreserved(picture)}))


def audit_settled_networks(picture: NetworkPicture) -> tuple[Violation, ...]:
    """The violations of what must hold when no change is in flight, in a stable order."""
    twice = (_twice(*each) for each in _held_twice(picture))
    found = chain(twice, audit_networks(picture), _reserved_for_nothing(picture), _leaked(picture))
    return tuple(sorted(set(found)))


def _held_twice(picture: NetworkPicture) -> Iterator[tuple[IPAddress, _Held, _Held]]:
    """Addresses in two pools that must not share one: pools of one network, and pools guarded under one name."""
    together: dict[tuple[str, str], list[PoolView]] = defaultdict(list)
    for pool in picture.pools:
        if pool.network:
            together["network", pool.network].append(pool)
        if pool.guarded_as is not None:
            together["guarded", pool.guarded_as].append(pool)
    for pools in together.values():
        seen: dict[IPAddress, _Held] = {}
        for pool in sorted(pools, key=lambda pool: pool.pool):
            for address, holder in pool.holders.items():
                if address in seen:
                    yield address, seen[address], (pool.pool, holder)
                else:
                    seen[address] = pool.pool, holder


def _overlapping(picture: NetworkPicture) -> Iterator[Violation]:
    """Slices of two nodes that overlap. CIDRs are nested or disjoint, so in address order the widest one decides."""
    networks: dict[tuple[str, int], list[SliceView]] = defaultdict(list)
    for item in picture.slices:
        networks[item.network, item.slice.version].append(item)
    for items in networks.values():
        items.sort(key=lambda item: (int(item.slice.network_address), item.slice.prefixlen, item.node))
        last: SliceView | None = None
        for item in items:
            if last is None or overlap(last.slice, item.slice) is None:
                last = item
            elif last.node != item.node:
                yield Violation(
                    1,
                    str(item.slice),
                    f"slice {item.slice} of node {item.node} overlaps slice {last.slice} of node {last.node} "
                    f"in network {item.network}",
                )


def _unreserved(picture: NetworkPicture) -> Iterator[Violation]:
    reserved = {(item.guarded_as, item.address): item.holder.podref for item in picture.reservations}
    for pool in picture.pools:
        if pool.guarded_as is None:
            continue
        for address, holder in pool.holders.items():
            reserver = reserved.get((pool.guarded_as, address))
            if reserver != holder.podref:
                what_is = f"reserved for {reserver}" if reserver is not None else "not reserved"
                yield Violation(
                    2,
                    str(address),
                    f"{address} is held by {holder.podref} in pool {pool.pool}, but {what_is}",
                )


def _reserved_for_nothing(picture: NetworkPicture) -> Iterator[Violation]:
    """Reservations without an allocation. One in the range of an unguarded or unknown pool may be meant for that pool."""
    held = {
        (pool.guarded_as, address, holder.podref)
        for pool in picture.pools
        for address, holder in pool.holders.items()
    }
    for item in picture.reservations:
        claim = item.address, item.holder.podref
        if (item.guarded_as, *claim) not in held and (None, *claim) not in held:
            yield Violation(
                2,
                str(item.address),
                f"{item.address} is reserved for {item.holder.podref} ({item.name}), but no pool has it so",
            )


def _leaked(picture: NetworkPicture) -> Iterator[Violation]:
    if picture.pods is None:
        return
    held: Iterable[tuple[IPAddress, Allocation, str]] = chain(
        (
            (address, holder, f"pool {pool.pool}")
            for pool in picture.pools
            for address, holder in pool.holders.items()
        ),
        ((item.address, item.holder, f"reservation {item.name}") for item in picture.reservations),
    )
    for address, holder, where in held:
        uids = picture.pods.get(holder.podref)
        if uids is None or (holder.pod_uid and holder.pod_uid not in uids):
            yield Violation(
                6, str(address), f"{address} is held in {where} for pod {holder.podref}, which is gone"
            )


def _is_one_pods(_address: IPAddress, first: _Held, second: _Held) -> bool:
    return is_same_holder(first[1], second[1])


def _twice(address: IPAddress, first: _Held, second: _Held) -> Violation:
    (pool, holder), (other_pool, other_holder) = first, second
    return Violation(
        1,
        str(address),
        f"{address} is held by {holder.podref} in pool {pool} and by {other_holder.podref} in pool {other_pool}",
    )
