"""What the cluster does by itself after writes: it sends bookmarks, and collects what has lost its owners."""

from podtide.cluster.embedded.alarm import Alarm
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
