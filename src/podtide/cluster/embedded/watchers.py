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
from contextlib import suppress

from msgspec import Struct

from podtide.cluster.embedded.records import Record, Transition
from podtide.cluster.embedded.selectors import NAME, NAMESPACE, Selector
from podtide.cluster.port import Change

Bucket = tuple[str, str]
_EVERYTHING: Bucket = ("", "")


class Sighting(Struct, frozen=True):
    """What a watcher is to be told: a change of an object, or with BOOKMARK only how far things have gone."""

    change: Change
    version: int
    transition: Transition | None = None

    @property
    def record(self) -> Record | None:
        """The object to show: as it is now, or as it was when it went; None for a bookmark."""
        if self.transition is None:
            return None
        return self.transition.departed if self.change is Change.DELETED else self.transition.new


class Watcher:
    """One open watch: what it selects, and what it has not yet read."""

    def __init__(self, selector: Selector, version: int, limit: int) -> None:
        self.selector = selector
        self.bucket = _bucket(selector)
        self.unread: deque[Sighting] = deque()
        self.closed = False
        self._told = version
        self._limit = limit
        self._news = asyncio.Event()

    def replay(self, missed: Iterable[Transition]) -> None:
        """Note what it missed before it was there; this much it may leave unread."""
        for transition in missed:
            self._note(transition)

    def offer(self, transition: Transition) -> None:
        """Note the transition, or close when too much is unread already."""
        if len(self.unread) < self._limit:
            self._note(transition)
        elif seen_through(self.selector, transition):
            self.close()

    def mark(self, version: int) -> None:
        """Note that things have gone as far as `version`, if that is news."""
        if version > self._told and len(self.unread) < self._limit:
            self._tell(Sighting(Change.BOOKMARK, version))

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._news.set()

    async def news(self, until: float | None) -> bool:
        """Wait for something to read; False when the watch is over, at the latest at that time of the loop's clock."""
        if until is not None and asyncio.get_running_loop().time() >= until:
            return False
        if not self.unread and not self.closed:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._news.wait()
        return bool(self.unread)

    def _note(self, transition: Transition) -> None:
        change = seen_through(self.selector, transition)
        if change is not None:
            self._tell(Sighting(change, transition.version, transition))

    def _tell(self, sighting: Sighting) -> None:
        self.unread.append(sighting)
        self._told = sighting.version
        self._news.set()


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
        for bucket in self._concerned(transition):
            watchers = self._buckets.get(bucket)
            if watchers is None:
                continue
            for watcher in tuple(watchers):
                watcher.offer(transition)
                if watcher.closed:
                    self.remove(watcher)

    def _concerned(self, transition: Transition) -> dict[Bucket, None]:
        # Not a set, whose order differs from process to process: a simulation must take the same path again.
        records = [record for record in (transition.old, transition.new) if record is not None]
        return {(path, record.fields.get(path, "")): None for path in self._paths for record in records}


def seen_through(selector: Selector, transition: Transition) -> Change | None:
    """What a write looks like to one who sees only selected objects; None when it shows nothing."""
    before = _selected(selector, transition.old)
    after = _selected(selector, transition.new)
    if before and after:
        return Change.MODIFIED
    if after:
        return Change.ADDED
    return Change.DELETED if before else None


def _selected(selector: Selector, record: Record | None) -> bool:
    return record is not None and selector.matches(record.labels, record.fields)


def _bucket(selector: Selector) -> Bucket:
    exact = selector.exact
    narrowest = sorted(exact, key=lambda path: (path != NAME, path == NAMESPACE))
    return (narrowest[0], exact[narrowest[0]]) if narrowest else _EVERYTHING
