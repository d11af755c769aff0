"""The port between the agent's API and the node's addresses, for the CNI plugin and for clients of Azure CNS.

Everything here is answered from memory and the journal: no call waits for the cluster, except an ADD that finds no
free address, and that one waits for the address which is already on its way.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from podtide.core.errors import FixError, RetryError
from podtide.core.pool.pool import Address, Owner
from podtide.core.pool.states import State
from podtide.core.subnet.scaler import Scaler


class NotReady(RetryError):
    """The agent does not know its pods, its NodeNetworkConfig or its subnet yet, or has no network container."""


class OutOfContact(RetryError):
    """The API server was silent for `contact_timeout`: the node may have been removed, so nothing new is assigned."""


class NoAddress(RetryError):
    """No address became free in time. The message says why, and what is being done about it."""


class Overtaken(RetryError):
    """A DEL for the same sandbox came while the ADD waited, or after it: the ADD is void."""


class Stopping(RetryError):
    """The agent is stopped before an address became free."""


class NotAssigned(FixError):
    """CHECK: the sandbox does not have the addresses that the runtime believes it has."""


class PodAddress(Struct, frozen=True, kw_only=True):
    """An address of a sandbox, with what its network container says about the network."""

    ip: str
    subnet: str
    """The subnet's CIDR: its prefix length is the address's."""
    gateway: str
    container: str
    """The network container's id."""
    primary: str
    """The network container's primary address."""


class PendingAdd(Struct, frozen=True):
    """An ADD that waits for an address. It is in the queue from the moment it is made."""

    wait: Callable[[], Awaitable[tuple[PodAddress, ...]]]
    """Returns the addresses. Raises NotReady, NoAddress, Overtaken or a DiskError. When cancelled, the ADD leaves the queue."""
    leave: Callable[[], None]
    """Leaves the queue without waiting, so that nothing is assigned later. Idempotent, also after `wait`."""


class NodeState(Struct, frozen=True, kw_only=True):
    """The state of the node at one instant, for metrics, health checks and people."""

    synced: bool
    in_contact: bool
    counts: Mapping[State, int] = {}
    """Addresses of all network containers by state."""
    primaries: int = 0
    requested: int | None = None
    """`requestedIPCount` as last written or read; None while no NodeNetworkConfig is known."""
    demand: int | None = None
    """None while it is unknown, which it is until the agent has listed its pods."""
    waiting_pods: int = 0
    """Pods of this node that have no address yet."""
    scaler: Scaler | None = None
    subnet: str = ""
    subnet_cidr: str = ""
    exhausted: bool = False
    starved: bool = False
    writes: int = 0
    """How often this process wrote the NodeNetworkConfig."""
    restatements: int = 0
    """How many of those changed only the statement beside the request."""
    collected_leaks: int = 0
    alarms: int = 0
    """How often a network container lacked an address that it must not lack, or granted one of another container."""


class Addresses(Protocol):
    """The node's addresses, for its API."""

    def start_add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | PendingAdd:
        """One address per family, or a place in the queue. Idempotent: the same owner gets the same addresses.

        An address is in the journal before it is returned. `arrived` is when the request reached the agent (its
        monotonic clock): a DEL of the same sandbox and interface that came later makes the ADD Overtaken, even if that
        DEL was carried out first. `wanted` are the very addresses to assign, if they are free. Raises NotReady,
        OutOfContact, Overtaken or a DiskError.
        """
        ...

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        """`start_add`, and the wait if there is one. When cancelled, the ADD leaves the queue."""
        ...

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        """Free what the sandbox's interface has, and cancel its waiting ADD. Returns what was freed; () if unknown."""
        ...

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        """The addresses of the sandbox's interface; NotAssigned when there are none."""
        ...

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        """Free the addresses of this network's sandboxes that are not `alive`. Returns how many sandboxes those were."""
        ...

    def require_ready(self) -> None:
        """NotReady unless pods, NodeNetworkConfig and subnet are known and there is a network container.

        A full pool does not count: the runtime would declare the node unready and its pods would be evicted.
        """
        ...

    def state(self) -> NodeState:
        """The current state of the node."""
        ...

    def all_addresses(self) -> Iterable[Address]:
        """Every address of the pool. To read, not to change."""
        ...
