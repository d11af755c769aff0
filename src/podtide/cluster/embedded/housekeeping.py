"""What the cluster does by itself after writes: it sends bookmarks, and collects what has lost its owners."""

import asyncio
from collections.abc import Callable

from podtide.cluster.embedded.collector import CollectorAction
from podtide.cluster.embedded.records import ObjectVersion
from podtide.cluster.embedded.store import Store
from podtide.cluster.embedded.table import ObjectTable
from podtide.cluster.port import Unavailable
from podtide.runtime.clock import Clock

_COLLECTION_RETRY_SECONDS = 1.0


class Housekeeping:
    """The background work of one store."""

    def __init__(self, store: Store, clock: Clock, bookmark_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds
        self._bookmarks = Alarm(self._send_bookmarks)
        self._collection = Alarm(self._collect)
        self.is_collecting = True
        """While this is False, what has lost its owners stays as it is."""

    def after_write(self) -> None:
        """See to what a write leaves to be done."""
        self.bookmark_later()
        self.collect_soon()

    def bookmark_later(self) -> None:
        """Send bookmarks, some time from now."""
        self._bookmarks.set(self._bookmark_seconds)

    def collect_soon(self) -> None:
        """Collect if there is anything to look at, once whoever is at work has had a turn."""
        if self._store.dependents.suspects:
            self._collection.set(0)

    def stop(self) -> None:
        """Do nothing more."""
        self._bookmarks.cancel()
        self._collection.cancel()

    def _send_bookmarks(self) -> None:
        for watcher in self._store.watchers():
            watcher.mark(self._store.version)

    def _collect(self) -> None:
        """Look at every suspect once. What their going leaves without owners is the next round's work."""
        if not self.is_collecting:
            return
        dependents = self._store.dependents
        for suspect in tuple(dependents.suspects):
            record = suspect.record
            if record is not None:
                try:
                    self._carry_out(dependents.fate(record), suspect.table, record)
                except Unavailable:
                    self._collection.set(_COLLECTION_RETRY_SECONDS)
                    return
            del dependents.suspects[suspect]
        self.after_write()

    def _carry_out(self, fate: CollectorAction, table: ObjectTable, record: ObjectVersion) -> None:
        if fate is CollectorAction.GOES:
            self._store.delete(table, record, self._clock.wall())
        elif fate is CollectorAction.LOSES_OWNERS:
            document = self._store.dependents.without_gone_owners(record)
            self._store.commit(table, record, self._store.prepare(table, document))


class Alarm:
    """A timer on the running loop, at most one at a time: calls `ring` once, however often it is set before.

    Background work is set off by writes and ends by itself. An idle cluster has no timer running, so that a simulation's
    clock can jump over idle hours and a deadlock is seen as one.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: asyncio.TimerHandle | None = None

    def set(self, delay_seconds: float) -> None:
        """Ring after that time, unless it is set already. What an earlier, ended loop still owed is forgotten."""
        if self._due is None or self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._due = self._loop.call_later(delay_seconds, self._go_off)

    def cancel(self) -> None:
        """Do not ring."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _go_off(self) -> None:
        self._due = None
        self._ring()
