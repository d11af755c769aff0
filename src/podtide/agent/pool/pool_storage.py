"""The pool's state on disk: the lock on the state directory, the journal, and what was replayed from it.

`record` writes a change to the journal and then applies it, in this order: when the disk is full nothing has changed, and
when the program is killed in between, its successor applies the change on replay.

A journal that is missing or damaged is not trusted in any part: records behind the damage may have undone those before
it. The state is then empty, and `lost` says why. It is rebuilt from the cluster (`JournaledPool.recover`), and that
rebuild is journaled as well: an agent that is killed half-way through it goes on with it after the restart.

A journal of a newer podtide is neither: the program ends, and changes nothing (`file_format`).
"""

from typing import TypeVar

from podtide.agent.pool.journal import (
    JOURNAL,
    Damaged,
    PoolChange,
    PoolState,
    encode_change,
    encode_state,
    read_records,
    replay,
)
from podtide.agent.pool.journal_file import Journal
from podtide.core.pool.pool import Pool
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk, DiskFull, Lock
from podtide.runtime.logging import Logger

LOCK = "agent.lock"
DAMAGED_JOURNAL = "agent.journal.damaged"

RECORDS_LOST = "this node's records are lost; nothing is free until it is proven"
"""Logged for a damaged journal, and for a missing one on a node that has addresses: a node without addresses is new."""

_NO_JOURNAL = "there was no journal"
"""The reason that is written into the journal which is begun then."""

T = TypeVar("T")


class PoolStorage:
    """The state of one node's pool, locked against other agents until `close`."""

    def __init__(self, state: PoolState, journal: Journal, lock: Lock, *, clock: Clock, log: Logger) -> None:
        self.state = state
        """The state as replayed and changed since. To read; `record` changes it."""
        self._journal = journal
        self._lock = lock
        self._clock = clock
        self._log = log

    @classmethod
    def open(cls, disk: Disk, *, cooldown_seconds: float, clock: Clock, log: Logger) -> "PoolStorage":
        """Lock the directory and replay its journal, or begin one. Locked when another agent has the directory.

        NewerFormat when a newer podtide wrote the journal.
        """
        lock = disk.lock(LOCK)
        try:
            state, journal = _replayed_or_lost(disk, cooldown_seconds, clock.monotonic(), log)
        except BaseException:
            lock.release()
            raise
        return cls(state, journal, lock, clock=clock, log=log)

    def close(self) -> None:
        """Stop writing, and release the lock."""
        self._journal.close()
        self._lock.release()

    def record(self, change: PoolChange[T]) -> T:
        """Append the change to the journal, then apply it. Returns what the pool returns.

        An error of the disk means that the change was not applied.
        """
        if self._journal.is_overgrown():
            self._shorten()
        self._journal.append(encode_change(change), durable=change.durable)
        return change.apply_to(self.state, self._clock.monotonic())

    def shorten_after(self, slack_bytes: int) -> None:
        """Rewrite the journal when it has grown by so many bytes, besides a few times the size of its state."""
        self._journal.shorten_after(slack_bytes)

    def _shorten(self) -> None:
        """Rewrite the journal as one record. Done before a change, while state and journal say the same."""
        try:
            self._journal.rewrite(encode_state(self.state))
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
        reason = f"the journal cannot be used: {error}; it is kept as {DAMAGED_JOURNAL}"
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
