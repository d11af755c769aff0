"""What the agent's API may ask of the node's addresses, whoever calls: the CNI plugin or a client of Azure CNS.

Everything here is answered from memory and the journal: no call waits for the cluster, except an ADD that finds no
free address, and that one waits for the address which is already on its way.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from podtide.core.errors import FixError, RetryError
from podtide.core.pool.pool import Address, Owner
from podtide.core.pool.states import State
from podtide.core.subnet.scaler import Scaler


class NotReady(RetryError):
    """The agent does not know its pods, its NodeNetworkConfig or its subnet yet, or has no network container."""


class OutOfContact(RetryError):
    """The cluster has not been heard of for `contact_timeout`: the node may have been removed, so nothing new is given."""


class NoAddress(RetryError):
    """No address became free in time. The words say why, and what is being done about it."""


class Overtaken(RetryError):
    """A DEL for the same sandbox came while the ADD waited, or after it: the ADD is void."""


class NotAssigned(FixError):
    """CHECK: the sandbox does not hold what it is said to hold."""


class PodAddress(Struct, frozen=True, kw_only=True):
    """An address that a sandbox has, with what its network is like."""

    ip: str
    subnet: str
    """The subnet's CIDR: its prefix length is the address's."""
    gateway: str
    container: str
    """The network container's id."""
    primary: str
    """The network container's primary address."""


class NodeState(Struct, frozen=True, kw_only=True):
    """The node at one instant, for metrics, health and people."""

    node: str
    synced: bool
    in_contact: bool
    counts: Mapping[State, int]
    """Addresses of all network containers by state."""
    primaries: int
    requested: int | None
    """`requestedIPCount` as last written or seen; None while no NodeNetworkConfig is known."""
    demand: int | None
    """None while it is unknown: absence means nothing until the agent has seen its pods."""
    waiting_pods: int
    """Pods of this node that have no address yet."""
    scaler: Scaler | None
    subnet: str
    subnet_cidr: str
    exhausted: bool
    starved: bool
    writes: int
    """How often this process wrote the NodeNetworkConfig."""
    restatements: int
    """How many of those stated anew what a request follows from that stayed as it was."""
    collected_leaks: int
    alarms: int
    """How often a network container lacked what it must not lack, or granted what is another's."""
    last_decision: str
    """The last decision in words, with its numbers."""


class Addresses(Protocol):
    """The node's addresses as its API sees them."""

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        """One address per family; the same owner gets the same. In the journal before it is answered.

        `arrived` is when the request reached the agent (its monotonic clock): a DEL of the same sandbox and interface
        that came later makes it Overtaken, even if that DEL was carried out first. `wanted` are the very addresses to
        give, if they are free. Raises NotReady, OutOfContact, NoAddress, Overtaken.
        """
        ...

    def add_now(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | None:
        """The same, if it needs no wait; None if it does, and then nothing has happened. Raises what `add` raises."""
        ...

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        """The sandbox's interface is gone; what it held is free. Nothing for what is not known. Cancels a waiting ADD."""
        ...

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        """What the sandbox's interface holds; NotAssigned when that is nothing."""
        ...

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        """Free what sandboxes of this network hold that are not among the living; answers how many those were."""
        ...

    def require_ready(self) -> None:
        """NotReady unless pods, NodeNetworkConfig and subnet are known and there is a network container.

        A full pool is no reason: the runtime would declare the node unready and its pods would be evicted.
        """
        ...

    def state(self) -> NodeState:
        """The node as it is now."""
        ...

    def all_addresses(self) -> Iterable[Address]:
        """Every address of the pool, to read."""
        ...
