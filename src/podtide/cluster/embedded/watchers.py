"""Who watches a kind, filed so that an event meets only the watchers it may concern.

A watcher that asks for an exact field (`spec.nodeName=n1`, its own `metadata.name`, a namespace) is filed under that
field and value, any other under nothing. A write looks up the value each such field had and the one it has now: with
five thousand node-scoped watchers, a pod's update finds the one or two it concerns.

A writer never waits for a watcher. One that does not keep up is dropped: it is given what it was sent so far, then its
watch ends and it resumes from the history, or learns there that it has to list anew.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podtide.cluster.embedded.records import ObjectVersion, Transition
from podtide.cluster.embedded.selectors import NAME, NAMESPACE, Selector
from podtide.cluster.port import Change, R, WatchEvent

Bucket = tuple[str, str]
_EVERYTHING: Bucket = ("", "")


class WatcherEvent(Struct, frozen=True, gc=False):
    """What a watcher is to be told: a change of an object, or with BOOKMARK only how far things have gone."""

    change: Change
    version: int
    transition: Transition | None = None

    @property
    def record(self) -> ObjectVersion | None:
        """The object to show: as it is now, or as it was when it went; None for a bookmark."""
        if self.transition is None:
            return None
        return self.transition.departed if self.change is Change.DELETED else self.transition.new

    def event(self, kind: type[R]) -> WatchEvent[R]:
        """The same for those who read structs, which share the one of `record`."""
        transition = self.transition
        if transition is None:
            return WatchEvent(self.change, None, str(self.version))
        if self.change is Change.DELETED:
            item = transition.departed_as(kind)
        else:
            assert transition.new is not None, "only a deletion leaves nothing"
            item = transition.new.shared(kind)
        return WatchEvent(self.change, item, item.metadata.resource_version)


class Watcher:
    """One open watch: what it selects, and what it has not yet read."""

    def __init__(self, selector: Selector, version: int, limit: int) -> None:
        self.bucket = _bucket(selector)
        self._selector = selector
        terms = len(selector.fields) + len(selector.labels)
        self._bucket_says_all = terms == (0 if self.bucket == _EVERYTHING else 1)
        self.unread: deque[WatcherEvent] = deque()
        self.closed = False
        self._told = version
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    def replay(self, missed: Iterable[Transition]) -> None:
        """Note what it missed before it was there; this much it may leave unread."""
        for transition in missed:
            change = seen_through(self._selector, transition)
            if change is not None:
                self._tell(WatcherEvent(change, transition.version, transition))

    def offer(self, transition: Transition, change: Change) -> None:
        """Note the transition, which is that change to its bucket, or close when too much is unread already."""
        seen = change if self._bucket_says_all else seen_through(self._selector, transition)
        if seen is None:
            return
        if len(self.unread) < self._limit:
            self._tell(WatcherEvent(seen, transition.version, transition))
        else:
            self.close()

    def mark(self, version: int) -> None:
        """Note that things have gone as far as `version`, if that is news."""
        if version > self._told and len(self.unread) < self._limit:
            self._tell(WatcherEvent(Change.BOOKMARK, version))

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._wake()

    def expire(self) -> None:
        """Its time is up: nothing more is to be read."""
        self.unread.clear()
        self.close()

    async def news(self) -> bool:
        """Wait for something to read; False when the watch is over."""
        if not self.unread and not self.closed:
            self._waiting = self._loop.create_future()
            await self._waiting
        return bool(self.unread)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _tell(self, sighting: WatcherEvent) -> None:
        self.unread.append(sighting)
        self._told = sighting.version
        self._wake()


class Watchers:
    """All watchers of one kind."""

    def __init__(self) -> None:
        self._buckets: dict[Bucket, dict[Watcher, None]] = {}
        self._paths: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Watcher]:
        return (watcher for bucket in self._buckets.values() for watcher in bucket)

    def add(self, watcher: Watcher) -> None:
        """Tell this watcher from now on."""
        self._buckets.setdefault(watcher.bucket, {})[watcher] = None
        self._paths[watcher.bucket[0]] += 1

    def remove(self, watcher: Watcher) -> None:
        """Tell it no more. Once dropped for slowness it is not there, and that is fine."""
        bucket = self._buckets.get(watcher.bucket, {})
        if watcher not in bucket:
            return
        del bucket[watcher]
        if not bucket:
            del self._buckets[watcher.bucket]
        self._paths[watcher.bucket[0]] -= 1
        if not self._paths[watcher.bucket[0]]:
            del self._paths[watcher.bucket[0]]

    def tell(self, transition: Transition) -> None:
        """Offer the transition to every watcher it may concern."""
        # Not by a set, whose order differs from process to process: a simulation must take the same path again.
        old, new = transition.old, transition.new
        for path in tuple(self._paths):
            before = None if old is None else (path, old.fields.get(path, ""))
            after = None if new is None else (path, new.fields.get(path, ""))
            if before == after:
                self._tell_bucket(after, transition, Change.MODIFIED)
            else:
                self._tell_bucket(before, transition, Change.DELETED)
                self._tell_bucket(after, transition, Change.ADDED)

    def _tell_bucket(self, bucket: Bucket | None, transition: Transition, change: Change) -> None:
        watchers = self._buckets.get(bucket) if bucket else None
        for watcher in tuple(watchers or ()):
            watcher.offer(transition, change)
            if watcher.closed:
                self.remove(watcher)


def seen_through(selector: Selector, transition: Transition) -> Change | None:
    """What a write looks like to one who sees only selected objects; None when it shows nothing."""
    before = _selected(selector, transition.old)
    after = _selected(selector, transition.new)
    if before and after:
        return Change.MODIFIED
    if after:
        return Change.ADDED
    return Change.DELETED if before else None


def _selected(selector: Selector, record: ObjectVersion | None) -> bool:
    return record is not None and selector.matches(record.labels, record.fields)


def _bucket(selector: Selector) -> Bucket:
    exact = selector.exact
    narrowest = sorted(exact, key=lambda path: (path != NAME, path == NAMESPACE))
    return (narrowest[0], exact[narrowest[0]]) if narrowest else _EVERYTHING
