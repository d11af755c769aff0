"""The state of the embedded cluster: one table per kind, one counter of versions, and a file if there is one.

A write is prepared, then committed. Committing writes it to the file, then to memory, then notifies the
watchers: when the file fails, nothing has changed; what a watcher has seen is on the disk.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from podtide.cluster.embedded.collector import Dependents
from podtide.cluster.embedded.persistence import (
    FIRST_VERSION,
    ClusterFile,
    DamagedFile,
    StoredObject,
    UnusableFile,
)
from podtide.cluster.embedded.records import Document, ObjectVersion, Transition, record_of, stamped
from podtide.cluster.embedded.table import ObjectTable
from podtide.cluster.embedded.watchers import Watcher
from podtide.cluster.embedded.writing import deleted
from podtide.cluster.port import DELETE, DeletePreconditions, NotFound, Unavailable
from podtide.core.errors import InvalidInput
from podtide.resources.base import Api, Resource
from podtide.resources.codec import decode

_KEPT_DOCUMENTS = 1_000
"""Written objects are often written again at once: so many of the last ones need not be decoded for that."""


class StoreSnapshot(Struct, frozen=True):
    """All objects of one instant, by resource and key."""

    version: int
    records: dict[str, dict[str, ObjectVersion]]


class Store:
    """All objects. `version` is that of the last write."""

    def __init__(self, kinds: Iterable[type[Resource]], history_size: int, file: Path | None) -> None:
        self._file = ClusterFile(file) if file else None
        self.version = FIRST_VERSION
        self.tables = {_resource(kind.api): ObjectTable(kind, history_size, self.version) for kind in kinds}
        self._table_by_kind: dict[type[Resource], ObjectTable] = {}
        self.dependents = Dependents()
        self._just_written: deque[ObjectVersion] = deque()
        self._closed = False
        if self._file:
            try:
                self._load(self._file)
            except BaseException:
                self._file.close()
                raise

    def table(self, kind: type[Resource]) -> ObjectTable:
        """The objects of a kind."""
        if self._closed:
            raise Unavailable("this cluster is closed: open another")
        if kind in self._table_by_kind:
            return self._table_by_kind[kind]
        api = kind.api
        try:
            table = self._table_by_kind[kind] = self.tables[_resource(api)]
        except KeyError:
            raise NotFound(
                f"this cluster has no kind {api.kind} of {api.api_version}: give it that kind first"
            ) from None
        return table

    def prepare(self, table: ObjectTable, document: Document) -> ObjectVersion:
        """The record this document will be if it is committed next."""
        record = stamped(document, self.version + 1, table.read_fields(document))
        record.keep_written(document)
        self._just_written.append(record)
        if len(self._just_written) > _KEPT_DOCUMENTS:
            self._just_written.popleft().keep_written(None)
        return record

    def commit(self, table: ObjectTable, old: ObjectVersion | None, new: ObjectVersion | None) -> None:
        """Replace `old` (None: create) by `new` (None: delete), durably, and notify watchers."""
        transition = Transition(self.version + 1, old, new)
        if self._file:
            encoded = new.encoded if new else None
            self._file.write(_resource(table.kind.api), transition.key, transition.version, encoded)
        self.version = transition.version
        self.dependents.note(table, transition)
        table.take(transition)

    def delete(
        self, table: ObjectTable, old: ObjectVersion, now: float, options: DeletePreconditions = DELETE
    ) -> None:
        """Delete the object, or mark it for deletion while finalizers keep it."""
        before = old.written()
        after = deleted(before, table.rules, now, options)
        if after is None:
            self.commit(table, old, None)
        elif after is not before:
            self.commit(table, old, self.prepare(table, after))

    def forget_history(self) -> None:
        """Forget all history, as if it had been compacted."""
        for table in self.tables.values():
            table.forget(self.version)

    def snapshot(self) -> StoreSnapshot:
        """All objects as they are now."""
        return StoreSnapshot(self.version, {name: dict(table.records) for name, table in self.tables.items()})

    def restore(self, snapshot: StoreSnapshot) -> None:
        """Go back to a snapshot, as an etcd that is restored from a backup: later resourceVersions are used again."""
        assert self._file is None, "a cluster in a file is restored by putting the file back"
        self.version, self.dependents = snapshot.version, Dependents()
        for name, table in self.tables.items():
            table.go_back(snapshot.records[name], snapshot.version)
            for record in table.records.values():
                self.dependents.note(table, Transition(record.version, None, record))

    def watchers(self) -> Iterator[Watcher]:
        """Every open watch."""
        return (watcher for table in self.tables.values() for watcher in table.watchers)

    def close_watches(self) -> None:
        """End every watch."""
        for watcher in self.watchers():
            watcher.close()

    def close(self) -> None:
        """End every watch and close the file."""
        self._closed = True
        self.close_watches()
        if self._file:
            self._file.close()

    def _load(self, file: ClusterFile) -> None:
        self.version = file.version()
        self.forget_history()
        for stored in file.objects():
            if stored.resource not in self.tables:
                raise UnusableFile(
                    f"{file.path} holds {stored.resource}, and this cluster has no such kind: use a newer podtide"
                )
            table = self.tables[stored.resource]
            record = self._restored(table, stored, file.path)
            table.load(record)
            self.dependents.note(table, Transition(record.version, None, record))

    def _restored(self, table: ObjectTable, stored: StoredObject, path: Path) -> ObjectVersion:
        """The record of what a file holds, once that is known to be an object of the kind."""
        try:
            item = decode(table.kind, stored.document)
        except (InvalidInput, ValueError) as error:
            raise DamagedFile(path, str(error)) from error
        if not item.metadata.name or not item.metadata.uid:
            raise DamagedFile(path, f"a {table.kind.api.kind} in it has no name or no uid")
        if stored.version > self.version:
            raise DamagedFile(path, f"{table.kind.api.kind} {item.key} is newer than the file's last version")
        document = msgspec.json.decode(stored.document)
        return record_of(document, stored.document, stored.version, table.read_fields(document))


def _resource(api: Api) -> str:
    return f"{api.plural}.{api.group}" if api.group else api.plural
