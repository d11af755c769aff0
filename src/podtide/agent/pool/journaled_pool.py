"""A node's pool that survives the program: every change is in the journal before anybody can see it.

Choose, write, carry out, in this order: when the disk is full nothing has happened, and when the program is killed
between writing and carrying out, its successor carries it out.

Records that are gone or damaged are believed in nothing, not even in the part that can be read: what follows the damage
may have undone it. The pool is then empty and `lost` says why; whoever runs the agent rebuilds it with `recover`, from
the cluster's word alone, and calls `prove_free` when every pod has shown its addresses. All of that is in the journal as
well: an agent killed half-way through a rebuild is still rebuilding when it comes back.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from podtide.agent.pool.journal import Damaged, Journal, read_records
from podtide.agent.pool.journal_records import (
    Adopted,
    Assigned,
    Believed,
    Bound,
    CarriedOver,
    Change,
    ContainerApplied,
    Doubted,
    Freed,
    Identity,
    Named,
    PoolState,
    Programmed,
    ProvenFree,
    Recovered,
    Withdrawn,
)
from podtide.agent.pool.journal_replay import encode_change, encode_state, replay
from podtide.core.pool.address import Address, Owner
from podtide.core.pool.pool import Applied, Container, Pool
from podtide.core.pool.states import State
from podtide.core.ranges import IPNetwork
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk, DiskFull, Lock
from podtide.runtime.logging import Logger

__all__ = ["Identity", "JournaledPool"]

LOCK = "agent.lock"
JOURNAL = "agent.journal"
DAMAGED_JOURNAL = "agent.journal.damaged"

RECORDS_LOST = "this node's records are lost; nothing is free until it is proven"
"""What is logged of a damaged journal, and of none on a node that has addresses: one without is new."""

_NO_JOURNAL = "there was no journal"
"""It is written into the one that is begun then."""

T = TypeVar("T")


class JournaledPool:
    """The pool, to read as `pool` and to change here. Every change may raise what a disk raises, and is then none."""

    def __init__(self, state: PoolState, journal: Journal, lock: Lock, *, clock: Clock, log: Logger) -> None:
        self.pool = state.pool
        """The pool, to read."""
        self._state = state
        self._journal = journal
        self._lock = lock
        self._clock = clock
        self._log = log

    @classmethod
    def open(cls, disk: Disk, *, cooldown_seconds: float, clock: Clock, log: Logger) -> "JournaledPool":
        """Replay the journal of this directory, or begin one. Locked when another agent has it.

        The lock is held until `close`, or the end of the process.
        """
        lock = disk.lock(LOCK)
        try:
            state, journal = _replayed_or_lost(disk, cooldown_seconds, clock.monotonic(), log)
        except BaseException:
            lock.release()
            raise
        return cls(state, journal, lock, clock=clock, log=log)

    def close(self) -> None:
        """Stop writing, and let another agent have the directory."""
        self._journal.close()
        self._lock.release()

    # What is so

    @property
    def identity(self) -> Identity | None:
        """Whose records these are; None when nobody was named yet."""
        return self._state.identity

    @property
    def lost(self) -> str:
        """Why earlier records cannot be believed. Empty when they are whole, and again after `prove_free`."""
        return self._state.lost

    @property
    def doubt(self) -> str:
        """The mark of the question whether the NodeNetworkConfig is of the present; "" when there is none."""
        return self._state.doubt

    def is_former(self, config_uid: str) -> bool:
        """Whether it is a NodeNetworkConfig that another one came after."""
        return config_uid in self._state.former

    # What the cluster says

    def doubt_it(self, mark: str) -> None:
        """The NodeNetworkConfig of these records went; durable. Who doubts already goes on doubting by the same mark."""
        if not self.doubt:
            self._change(Doubted(mark))

    def believe(self) -> None:
        """What the NodeNetworkConfig shows is of the present, and was taken in."""
        if self.doubt:
            self._change(Believed())

    def bind(self, identity: Identity) -> None:
        """These records are this node's from now on; durable. First withdraw what was another's."""
        if identity != self.identity:
            self._change(Bound(identity))

    def apply(self, container: Container) -> Applied:
        """See `Pool.apply`. What is no news is not written."""
        return self._change(ContainerApplied(container)) if self.pool.is_news(container) else Applied()

    def carry_over(self, container: Container, former: Collection[str]) -> tuple[str, ...]:
        """See `Pool.carry_over`. What is no news is not written."""
        if not self.pool.carried_over(container, former):
            return ()
        return self._change(CarriedOver(container, tuple(former)))

    def recover(self, container: Container, named: Iterable[str]) -> Applied:
        """See `Pool.recover`: while the records are lost. What is no news is not written."""
        return self._change(Recovered(container, tuple(named))) if self.pool.is_news(container) else Applied()

    def withdraw(self, container_id: str) -> Applied:
        """See `Pool.withdraw`."""
        return self._change(Withdrawn(container_id)) if self.pool.is_granted(container_id) else Applied()

    def programmed(self, names: Iterable[str]) -> None:
        """See `Pool.programmed`."""
        names = frozenset(names)
        pending = tuple(
            address.name for address in self._in(State.PENDING_PROGRAMMING) if address.name in names
        )
        if pending:
            self._change(Programmed(pending))

    def adopt(self, ip: str, owner: Owner) -> bool:
        """See `Pool.adopt`."""
        address = self.pool.find(ip)
        if address is None or address.state is not State.QUARANTINED:
            return False
        return self._change(Adopted(ip, owner))

    def prove_free(self, contested: Collection[str] = ()) -> int:
        """See `Pool.prove_free`. Nothing is `lost` any more, unless something in quarantine is contested."""
        quarantined = {address.ip for address in self._in(State.QUARANTINED)}
        still = tuple(sorted(quarantined.intersection(contested)))
        if quarantined == set(still) and (still or not self.lost):
            return 0
        return self._change(ProvenFree(still))

    # What pods need

    def assign(self, owner: Owner, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
        """See `Pool.assign`: the same owner gets the same; None when there is no free address, or not the wanted."""
        if held := self.pool.held_by(owner.sandbox, owner.interface):
            return held
        chosen = self.pool.choose(self._clock.monotonic(), wanted)
        if chosen is None:
            return None
        return self._change(Assigned(owner, tuple(address.ip for address in chosen)))

    def free(self, sandbox: str, interface: str) -> tuple[Address, ...]:
        """See `Pool.free`."""
        if not self.pool.held_by(sandbox, interface):
            return ()
        return self._change(Freed(sandbox, interface))

    def name_for_release(self, container_id: str, count: int) -> tuple[str, ...]:
        """See `Pool.name_for_release`. What it answers is durable, and may be told to others."""
        return self._name(container_id, self.pool.choose_releases(container_id, count))

    def name_idle_in(self, container_id: str, cidrs: Sequence[IPNetwork]) -> tuple[str, ...]:
        """Name for release what `Pool.idle_in` says. What it answers is durable, and may be told to others."""
        return self._name(container_id, self.pool.idle_in(container_id, cidrs))

    def _name(self, container_id: str, names: tuple[str, ...]) -> tuple[str, ...]:
        if names:
            self._change(Named(container_id, names))
        return names

    # How it is kept

    def shorten_after(self, slack_bytes: int) -> None:
        """See `Journal.shorten_after`."""
        self._journal.shorten_after(slack_bytes)

    def _in(self, state: State) -> Iterable[Address]:
        return (address for address in self.pool.addresses() if address.state is state)

    def _change(self, change: Change[T]) -> T:
        """The only place where anything changes: first in the journal, then here."""
        self._shorten_if_overgrown()
        self._journal.append(encode_change(change), durable=change.durable)
        return change.carry_out(self._state, self._clock.monotonic())

    def _shorten_if_overgrown(self) -> None:
        """Before a change, when state and journal say the same, and an error means that nothing has happened."""
        if not self._journal.is_overgrown():
            return
        try:
            self._journal.rewrite(encode_state(self._state))
        except DiskFull as error:
            self._log.warning("cannot shorten the journal; going on with the long one", error=str(error))


def _replayed_or_lost(
    disk: Disk, cooldown_seconds: float, now: float, log: Logger
) -> tuple[PoolState, Journal]:
    content = disk.read(JOURNAL)
    if content is None:
        log.info("there is no journal yet: nothing is free until the cluster has shown what this node has")
        return _begin_lost(disk, cooldown_seconds, _NO_JOURNAL)
    try:
        found = read_records(content)
        state = replay(found.records, Pool(cooldown_seconds), now)
    except Damaged as error:
        disk.replace(DAMAGED_JOURNAL, content)
        reason = f"the journal cannot be believed: {error}; it is kept as {DAMAGED_JOURNAL}"
        log.warning(RECORDS_LOST, reason=reason)
        return _begin_lost(disk, cooldown_seconds, reason)
    if state.identity is None and state.lost == _NO_JOURNAL:
        log.info("the journal is still empty: nothing is free until the cluster has shown what this node has")
    else:
        torn_bytes = len(content) - found.good_bytes
        log.info("replayed the journal", records=len(found.records), torn_bytes=torn_bytes, lost=state.lost)
    return state, Journal.resume(disk, JOURNAL, content, found)


def _begin_lost(disk: Disk, cooldown_seconds: float, reason: str) -> tuple[PoolState, Journal]:
    state = PoolState(Pool(cooldown_seconds), lost=reason)
    return state, Journal.begin(disk, JOURNAL, encode_state(state))
