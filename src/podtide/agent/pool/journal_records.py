"""Every change that can befall a node's records, each written down with what was decided, not with how.

The pool chooses once; its choice is in the record, so that carrying a record out again needs neither a clock nor the
rules by which it was chosen, and a newer podtide with better rules still reads what an older one did. Living and
replaying are the same `carry_out`: what is replayed is what happened.

Which of them wait for the disk (`durable`), and why, says `journal`.
"""

from typing import ClassVar, Protocol, TypeVar

from msgspec import Struct

from podtide.core.pool.address import Address, Owner
from podtide.core.pool.pool import AppliedContainer, GrantedContainer, Pool
from podtide.core.pool.snapshot import PoolSnapshot


class Identity(Struct, frozen=True, omit_defaults=True):
    """Whose records these are: a Node and its NodeNetworkConfig, by uid."""

    node_uid: str
    config_uid: str
    made: str = ""
    """When the NodeNetworkConfig was made, as it says."""

    def is_after(self, made: str) -> bool:
        """Whether an object that was made then cannot have been made after this one, as far as both say when they were."""
        return bool(made) and made <= self.made


_MOST_FORMER = 16


class PoolState:
    """What a node knows of its addresses."""

    def __init__(self, pool: Pool, identity: Identity | None = None, lost: str = "") -> None:
        self.pool = pool
        self.identity = identity
        self.lost = lost
        """Why earlier records cannot be believed; empty when they are whole, or nothing depends on them any more."""
        self.former: tuple[str, ...] = ()
        """Uids of NodeNetworkConfigs that came before the present one: if one of them is back, it is of the past."""
        self.doubt = ""
        """The mark of the question whether the NodeNetworkConfig is of the present; "" when there is none."""


class Beginning(Struct, frozen=True, omit_defaults=True):
    """The first record: the state from which all others go on."""

    format: int
    identity: Identity | None = None
    lost: str = ""
    pool: PoolSnapshot = PoolSnapshot()
    former: tuple[str, ...] = ()
    doubt: str = ""

    def carry_out(self, state: PoolState, now: float) -> None:
        """Make a new state this one."""
        state.identity, state.lost = self.identity, self.lost
        state.former, state.doubt = self.former, self.doubt
        state.pool.restore(self.pool, now)


T_co = TypeVar("T_co", covariant=True)


class Change(Protocol[T_co]):
    """What all records but the first are."""

    durable: ClassVar[bool]
    """Whether it waits for the disk."""

    def carry_out(self, state: PoolState, now: float, /) -> T_co:
        """Make it so, and answer what the pool answers."""
        ...


class _Record(Struct, frozen=True, tag_field="did", omit_defaults=True):
    durable: ClassVar[bool] = False


class Bound(_Record, frozen=True, tag="bound"):
    """The records belong to this node from now on."""

    identity: Identity

    durable: ClassVar[bool] = True

    def carry_out(self, state: PoolState, _now: float) -> None:
        """See `Change`."""
        before = state.identity.config_uid if state.identity is not None else ""
        if before and before != self.identity.config_uid:
            known = [uid for uid in state.former if uid not in (before, self.identity.config_uid)]
            state.former = (*known, before)[-_MOST_FORMER:]
        state.identity = self.identity


class Doubted(_Record, frozen=True, tag="doubted"):
    """The NodeNetworkConfig went: if it is seen again, it may be of the past."""

    mark: str

    durable: ClassVar[bool] = True

    def carry_out(self, state: PoolState, _now: float) -> None:
        """See `Change`."""
        state.doubt = self.mark


class Believed(_Record, frozen=True, tag="believed"):
    """What the NodeNetworkConfig shows is of the present, and was taken in."""

    def carry_out(self, state: PoolState, _now: float) -> None:
        """See `Change`."""
        state.doubt = ""


class ContainerApplied(_Record, frozen=True, tag="applied"):
    """A network container came with news."""

    container: GrantedContainer

    def carry_out(self, state: PoolState, now: float) -> AppliedContainer:
        """See `Change`."""
        return state.pool.apply(self.container, now)


class CarriedOver(_Record, frozen=True, tag="carried over"):
    """The machine is another Node by now, and its container grants what former ones did."""

    container: GrantedContainer
    former: tuple[str, ...]

    def carry_out(self, state: PoolState, now: float) -> tuple[str, ...]:
        """See `Change`."""
        return state.pool.carry_over(self.container, self.former, now)


class Recovered(_Record, frozen=True, tag="recovered"):
    """A network container came while the records were lost."""

    container: GrantedContainer
    named: tuple[str, ...]

    def carry_out(self, state: PoolState, now: float) -> AppliedContainer:
        """See `Change`."""
        return state.pool.recover(self.container, self.named, now)


class Withdrawn(_Record, frozen=True, tag="withdrawn"):
    """A network container is granted no longer."""

    container_id: str

    def carry_out(self, state: PoolState, now: float) -> AppliedContainer:
        """See `Change`."""
        return state.pool.withdraw(self.container_id, now)


class Programmed(_Record, frozen=True, tag="programmed"):
    """The network carries these now."""

    names: tuple[str, ...]

    def carry_out(self, state: PoolState, now: float) -> None:
        """See `Change`."""
        state.pool.programmed(self.names, now)


class Assigned(_Record, frozen=True, tag="assigned"):
    """A sandbox got addresses."""

    owner: Owner
    ips: tuple[str, ...]

    def carry_out(self, state: PoolState, now: float) -> tuple[Address, ...]:
        """See `Change`."""
        return state.pool.take(self.owner, self.ips, now)


class Freed(_Record, frozen=True, tag="freed"):
    """A sandbox gave back what it had."""

    sandbox: str
    interface: str

    def carry_out(self, state: PoolState, now: float) -> tuple[Address, ...]:
        """See `Change`."""
        return state.pool.free(self.sandbox, self.interface, now)


class Named(_Record, frozen=True, tag="named"):
    """These are given up for release."""

    container_id: str
    names: tuple[str, ...]

    durable: ClassVar[bool] = True

    def carry_out(self, state: PoolState, now: float) -> None:
        """See `Change`."""
        state.pool.name(self.container_id, self.names, now)


class Adopted(_Record, frozen=True, tag="adopted"):
    """A sandbox was found to have a quarantined address."""

    ip: str
    owner: Owner

    def carry_out(self, state: PoolState, now: float) -> bool:
        """See `Change`."""
        return state.pool.adopt(self.ip, self.owner, now)


class ProvenFree(_Record, frozen=True, tag="proven free"):
    """Every pod has shown its addresses: nothing but what is contested depends on the lost records any more."""

    contested: tuple[str, ...] = ()

    def carry_out(self, state: PoolState, now: float) -> int:
        """See `Change`."""
        if not self.contested:
            state.lost = ""
        return state.pool.prove_free(now, self.contested)


AnyChange = (
    Bound
    | Doubted
    | Believed
    | ContainerApplied
    | CarriedOver
    | Recovered
    | Withdrawn
    | Programmed
    | Assigned
    | Freed
    | Named
    | Adopted
    | ProvenFree
)
