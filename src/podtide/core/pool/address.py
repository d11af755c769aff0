"""An address in a node's pool, who holds it, and how many there are of each state."""

from typing import Literal

from msgspec import Struct

from podtide.core.pool.states import State

Family = Literal[4, 6]


class Owner(Struct, frozen=True):
    """Who holds an address: a sandbox's interface. The rest tells whose it is, and takes no part in identity."""

    sandbox: str
    interface: str
    pod: str = ""
    """The pod's uid, where the runtime tells it."""
    namespace: str = ""
    name: str = ""
    network: str = ""
    """The network's name in the CNI configuration: garbage is collected network by network."""


class Address(Struct):
    """One address in the pool.

    `since` is when it entered its state, and `turn` the number of that move among all the pool's moves: the order of
    addresses is that of their turns, which outlive a restart, as the times of a clock do not.
    """

    name: str
    ip: str
    container: str
    state: State | None = None
    since: float = 0.0
    turn: int = 0
    used: bool = False
    owner: Owner | None = None

    def __str__(self) -> str:
        return f"{self.ip} as {self.name} ({self.state})"


class StateCounts(Struct, frozen=True):
    """How many addresses are in each state."""

    pending_programming: int = 0
    available: int = 0
    assigned: int = 0
    pending_release: int = 0
    quarantined: int = 0
    orphaned: int = 0

    @property
    def held(self) -> int:
        """What the container grants: all but the orphans, which it no longer does."""
        return (
            self.pending_programming
            + self.available
            + self.assigned
            + self.pending_release
            + self.quarantined
        )
