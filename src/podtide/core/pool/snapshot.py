"""A pool as plain values, for what outlives a program: everything that decides what the pool does next, except times.

Clocks start anew with a machine, so a time that was written down means nothing later. The order of addresses does,
and is kept as their turns; an address that a pod had cools down anew.
"""

from msgspec import Struct

from podtide.core.pool.address import Family, Owner
from podtide.core.pool.states import State


class KeptAddress(Struct, frozen=True, omit_defaults=True):
    """An address as it stands."""

    name: str
    ip: str
    state: State
    turn: int
    used: bool = False


class KeptContainer(Struct, frozen=True, omit_defaults=True):
    """A network container with its addresses in the order in which they were granted."""

    id: str
    family: Family
    version: int
    addresses: tuple[KeptAddress, ...] = ()
    withdrawn: bool = False


class KeptOwner(Struct, frozen=True):
    """Who holds which addresses, in the order in which they were told to the owner."""

    owner: Owner
    ips: tuple[str, ...]


class PoolSnapshot(Struct, frozen=True, omit_defaults=True):
    """The whole pool. Two pools with equal snapshots are equal, but for the times."""

    turn: int = 0
    containers: tuple[KeptContainer, ...] = ()
    owners: tuple[KeptOwner, ...] = ()
