"""All objects of one kind: as they are now, in order, and what happened to them lately.

The history serves two readers. A watch that resumes replays what it missed. A list in pages must show one instant
though writes go on between its pages: it shows the present with what happened since undone, so that no snapshot is
ever copied. Both end where the history does.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice

from podtide.cluster.embedded.records import ObjectVersion, Transition, key_of
from podtide.cluster.embedded.selectors import NAME, NAMESPACE, Selector, field_reader
from podtide.cluster.embedded.watchers import Watchers
from podtide.cluster.embedded.writing import rules_of
from podtide.cluster.port import Gone
from podtide.resources.base import Resource


class ObjectTable:
    """The objects of one kind. `horizon` is the version up to which history is forgotten."""

    def __init__(self, kind: type[Resource], history_size: int, horizon: int) -> None:
        api = kind.api
        self.kind = kind
        self.rules = rules_of(kind)
        self.records: dict[str, ObjectVersion] = {}
        self.watchers = Watchers()
        self.horizon = horizon
        self._indexed = tuple(path for path in api.field_selectors if path not in {NAME, NAMESPACE})
        self.read_fields = field_reader(self._indexed)
        self._history_size = history_size
        self._history: deque[Transition] = deque()
        self._order: list[str] | None = None
        """The keys in order, once somebody needs it. Kept in order all the time, a hundred thousand would slow each write."""
        self._by_field: dict[tuple[str, str], set[str]] = {}

    def load(self, record: ObjectVersion) -> None:
        """Take over what a file held, which is no news to anybody."""
        self._put(None, record)

    def go_back(self, records: Mapping[str, ObjectVersion], version: int) -> None:
        """Hold these objects and no others, as of that version. Watches end, and nothing is known of what happened."""
        for watcher in self.watchers:
            watcher.expire()
        self.watchers = Watchers()
        self.records, self._by_field, self._order = {}, {}, None
        for record in records.values():
            self.load(record)
        self.forget(version)

    def take(self, transition: Transition) -> None:
        """Let a write be so, remember it and tell the watchers."""
        if transition.new is None:
            assert transition.old is not None, "what was not there cannot go"
            self._remove(transition.old)
        else:
            self._put(transition.old, transition.new)
            if transition.old is not None:
                transition.old.let_go()
        self._history.append(transition)
        if len(self._history) > self._history_size:
            self.horizon = self._history.popleft().version
        self.watchers.tell(transition)

    def forget(self, version: int) -> None:
        """Drop all history; `version` is the present."""
        self._history.clear()
        self.horizon = version

    def since(self, version: int) -> list[Transition]:
        """What happened after `version`, oldest first; Gone when that is no longer known."""
        if version < self.horizon:
            raise Gone(
                f"{self.kind.api.plural} are remembered back to version {self.horizon}, not to {version}: list them anew"
            )
        newer = []
        for transition in reversed(self._history):
            if transition.version <= version:
                break
            newer.append(transition)
        newer.reverse()
        return newer

    def select(
        self, selector: Selector, *, version: int | None = None, start: str = "", limit: int = 0
    ) -> tuple[list[ObjectVersion], str]:
        """The selected records from the key `start` on, as they were at `version` or are now, and the next key."""
        records = self._present(selector, start) if version is None else self._past(version, start)
        found = (record for record in records if selector.matches(record.labels, record.fields))
        page = list(islice(found, limit + 1)) if limit else list(found)
        if limit and len(page) > limit:
            return page[:limit], page[limit].key
        return page, ""

    def _present(self, selector: Selector, start: str) -> Iterator[ObjectVersion]:
        for key in self._candidates(selector.exact, start):
            record = self.records.get(key)
            if record is not None:
                yield record

    def _candidates(self, exact: Mapping[str, str], start: str) -> Iterable[str]:
        """Keys among which all objects with these fields are, in order."""
        if NAME in exact and (NAMESPACE in exact or not self.kind.api.namespaced):
            return (key_of(exact.get(NAMESPACE, ""), exact[NAME]),)
        for path in self._indexed:
            if path in exact:
                keys = self._by_field.get((path, exact[path]), set())
                return sorted(key for key in keys if key >= start)
        first, last = start, None
        if NAMESPACE in exact:
            first = max(start, key_of(exact[NAMESPACE], ""))
            last = exact[NAMESPACE] + chr(ord("/") + 1)
        return self._between(first, last)

    def _between(self, first: str, last: str | None) -> Iterator[str]:
        keys = self._order
        if keys is None:
            keys = self._order = sorted(self.records)
        until = len(keys) if last is None else bisect_left(keys, last)
        return (keys[index] for index in range(bisect_left(keys, first), until))

    def _past(self, version: int, start: str) -> Iterator[ObjectVersion]:
        then: dict[str, ObjectVersion | None] = {}
        for transition in self.since(version):
            then.setdefault(transition.key, transition.old)
        gone = sorted(key for key in then if key >= start and key not in self.records)
        for key in merge(self._between(start, None), gone):
            record = then[key] if key in then else self.records[key]
            if record is not None:
                yield record

    def _put(self, old: ObjectVersion | None, new: ObjectVersion) -> None:
        self.records[new.key] = new
        if old is None:
            self._order = None
        for path in self._indexed:
            if old is not None:
                if old.fields[path] == new.fields[path]:
                    continue
                self._unindex(path, old)
            self._by_field.setdefault((path, new.fields[path]), set()).add(new.key)

    def _remove(self, old: ObjectVersion) -> None:
        del self.records[old.key]
        self._order = None
        for path in self._indexed:
            self._unindex(path, old)

    def _unindex(self, path: str, old: ObjectVersion) -> None:
        bucket = (path, old.fields[path])
        self._by_field[bucket].discard(old.key)
        if not self._by_field[bucket]:
            del self._by_field[bucket]
