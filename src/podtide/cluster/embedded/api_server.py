"""What an API server does, on JSON documents and at once: the verbs, and what they do to the store.

There are two ways to reach it: the Cluster port (`adapter`), with structs, and HTTP (`podtide.cluster.served`), with
documents of which no struct knows every field. Both find the same rules here, and nothing here awaits: one request is
carried out as a whole before the next.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from podtide.cluster.embedded.housekeeping import Housekeeping
from podtide.cluster.embedded.managed_fields import Writer
from podtide.cluster.embedded.naming import made_up_name
from podtide.cluster.embedded.paging import Position, from_token, to_token
from podtide.cluster.embedded.records import Document, ObjectVersion, key_of
from podtide.cluster.embedded.selectors import Selector, parse_selector
from podtide.cluster.embedded.store import Store, StoreSnapshot
from podtide.cluster.embedded.table import ObjectTable
from podtide.cluster.embedded.watchers import Watcher
from podtide.cluster.embedded.writing import (
    applied,
    created,
    describe,
    first_applied,
    is_released,
    replaced,
    status_replaced,
)
from podtide.cluster.merge_patch import merge_patch, merge_patched
from podtide.cluster.port import (
    DELETE,
    AlreadyExists,
    Conflict,
    DeletePreconditions,
    Gone,
    Invalid,
    NotFound,
    Patch,
)
from podtide.core.errors import InvalidInput
from podtide.resources.base import Api, Resource
from podtide.resources.codec import from_document
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock
from podtide.runtime.ids import new_uuid

_VERSION = re.compile("[0-9]{1,19}")
"""A version is a number of 64 bits."""


class ApiServerLimits(Struct, frozen=True, kw_only=True):
    """How much history the cluster keeps, and its time limits."""

    history: int = 10_000
    """Writes per kind that a watch or a list in pages can go back."""
    unread: int = 1_000
    """Events a watcher may leave unread before it is dropped."""
    bookmark_seconds: float = 60.0
    """How long after a write every watch has an event or a bookmark that is newer."""
    watch_seconds: float | None = None
    """How long a watch lasts before the server closes it."""


class ObjectSelection(Struct, frozen=True, kw_only=True):
    """The namespace and selectors of a list or watch, in Kubernetes' syntax."""

    namespace: str = ""
    fields: str = ""
    labels: str = ""


class Listing(Struct, frozen=True):
    """One page of a list, and the token for the rest."""

    records: list[ObjectVersion]
    version: int
    more: str


class ApiServer:
    """The verbs of the API. A document that is passed in belongs to the server: the caller must not use it again."""

    def __init__(
        self,
        file: Path | None,
        *,
        kinds: Iterable[type[Resource]],
        clock: Clock,
        randomness: Random,
        limits: ApiServerLimits,
    ) -> None:
        self.clock = clock
        self.store = Store(kinds, limits.history, file)
        self._limits = limits
        self._randomness = randomness
        self.housekeeping = Housekeeping(self.store, clock, limits.bookmark_seconds)

    def get(self, kind: type[Resource], name: str, namespace: str = "") -> ObjectVersion:
        """The object as it is now."""
        return self._existing(self._enter(kind, namespace), name, namespace)

    def has(self, kind: type[Resource], name: str, namespace: str = "") -> bool:
        """Whether the object exists."""
        return key_of(namespace, name) in self._enter(kind, namespace).records

    def list(
        self, kind: type[Resource], selection: ObjectSelection, *, limit: int = 0, more: str = ""
    ) -> Listing:
        """A page of the objects selected: all of them without a limit."""
        table = self._enter(kind, selection.namespace, all_namespaces=True)
        selector = _selector(kind, selection)
        if limit < 0:
            raise Invalid(f"a list cannot be limited to {limit}: give a number, or 0 for no limit")
        if more:
            position = from_token(more)
            self._refuse_future(position.version)
            records, rest = table.select(
                selector, version=position.version, start=position.start, limit=limit
            )
        else:
            position = Position(self.store.version, "")
            records, rest = table.select(selector, limit=limit)
        return Listing(records, position.version, to_token(Position(position.version, rest)) if rest else "")

    @contextmanager
    def watching(
        self,
        kind: type[Resource],
        selection: ObjectSelection,
        resource_version: str,
        asked_seconds: float | None = None,
    ) -> Iterator[Watcher]:
        """A watcher of every change after that version, until its time is up or the context ends."""
        table = self._enter(kind, selection.namespace, all_namespaces=True)
        seen = self._known_version(resource_version)
        watcher = Watcher(_selector(kind, selection), seen, self._limits.unread)
        watcher.replay(table.since(seen))
        if seen < self.store.version:
            self.housekeeping.bookmark_later()
        table.watchers.add(watcher)
        lasting = [each for each in (asked_seconds, self._limits.watch_seconds) if each is not None]
        expiry = asyncio.get_running_loop().call_later(min(lasting), watcher.expire) if lasting else None
        try:
            yield watcher
        finally:
            table.watchers.remove(watcher)
            if expiry:
                expiry.cancel()

    def create(self, kind: type[Resource], document: Document, *, manager: str) -> ObjectVersion:
        """Create the object."""
        metadata = document["metadata"]
        table = self._enter(kind, metadata.get("namespace", ""))
        if "resourceVersion" in metadata:
            raise Invalid(
                f"{describe(kind.api, *_place(document))} is to be created: leave out its resource version"
            )
        return self._create(table, document, self._writer(kind.api, manager))

    def replace(self, kind: type[Resource], document: Document, *, manager: str) -> ObjectVersion:
        """Update the object to this document."""
        namespace, name = _place(document)
        table = self._enter(kind, namespace)
        rules = table.rules
        writer = self._writer(kind.api, manager)
        if rules.behaviour.replace_creates and key_of(namespace, name) not in table.records:
            if uid := document["metadata"].get("uid"):
                raise Conflict(f"{describe(kind.api, namespace, name)} with uid {uid} is gone: read again")
            return self._create(table, document, writer)
        old = self._existing(table, name, namespace)
        before = old.written()
        return self._update(table, old, before, replaced(before, document, rules, writer))

    def replace_status(self, kind: type[Resource], document: Document, *, manager: str) -> ObjectVersion:
        """Update the object's status to this document's."""
        namespace, name = _place(document)
        table = self._enter(kind, namespace)
        _check_status_subresource(kind.api)
        writer = self._writer(kind.api, manager, subresource="status")
        old = self._existing(table, name, namespace)
        before = old.written()
        return self._update(table, old, before, status_replaced(before, document, table.rules, writer))

    def apply(self, kind: type[Resource], document: Document, *, manager: str, force: bool) -> ObjectVersion:
        """Apply the document server-side."""
        namespace, name = _place(document)
        table = self._enter(kind, namespace)
        rules = table.rules
        writer = self._writer(kind.api, manager)
        old = table.records.get(key_of(namespace, name))
        if old is None:
            return self._add(table, first_applied(document, rules, writer, self._uid()))
        before = old.written()
        return self._update(table, old, before, applied(before, document, rules, writer, force=force))

    def patch(self, patch: Patch[Any], *, manager: str) -> ObjectVersion:
        """Merge a JSON merge patch into the object, or into its status alone."""
        kind, changes = patch.kind, merge_patch(patch)
        table = self._enter(kind, patch.namespace)
        if patch.status:
            _check_status_subresource(kind.api)
        old = self._existing(table, patch.name, patch.namespace)
        before = old.written()
        document = _patched(kind, before, changes)
        if patch.status:
            writer = self._writer(kind.api, manager, subresource="status")
            after = status_replaced(before, document, table.rules, writer)
        else:
            after = replaced(before, document, table.rules, self._writer(kind.api, manager))
        return self._update(table, old, before, after)

    def delete(
        self, kind: type[Resource], name: str, namespace: str = "", options: DeletePreconditions = DELETE
    ) -> ObjectVersion | None:
        """Delete the object (None), or mark it while finalizers keep it."""
        table = self._enter(kind, namespace)
        old = self._existing(table, name, namespace)
        self.store.delete(table, old, self.clock.wall(), options)
        self.housekeeping.after_write()
        return table.records.get(old.key)

    def restore(self, snapshot: StoreSnapshot) -> None:
        """Go back to a snapshot: every watch ends, and later resourceVersions are used again."""
        self.store.restore(snapshot)
        self.housekeeping.collect_soon()

    def expire_history(self) -> None:
        """Forget what happened before now, as compaction does: older versions and tokens are Gone."""
        self.store.forget_history()

    def close_watches(self) -> None:
        """End every watch, as a server that restarts does; watchers may resume."""
        self.store.close_watches()

    def close(self) -> None:
        """End every watch and close the file."""
        self.housekeeping.stop()
        self.store.close()

    def _create(self, table: ObjectTable, document: Document, writer: Writer) -> ObjectVersion:
        metadata = document["metadata"]
        if "name" not in metadata:
            metadata["name"] = self._free_name(table, metadata)
        place = _place(document)
        if key_of(*place) in table.records:
            raise AlreadyExists(
                f"{describe(table.kind.api, *place)} exists already: replace it, or use another name"
            )
        return self._add(table, created(document, table.rules, writer, self._uid()))

    def _add(self, table: ObjectTable, document: Document) -> ObjectVersion:
        record = self._checked(table, document)
        self._commit(table, None, record)
        return record

    def _update(
        self, table: ObjectTable, old: ObjectVersion, before: Document, after: Document
    ) -> ObjectVersion:
        if after is before or after == before:
            return old
        record = self._checked(table, after)
        self._commit(table, old, None if is_released(after) else record)
        return record

    def _checked(self, table: ObjectTable, document: Document) -> ObjectVersion:
        """The document as a record; Invalid when it does not fit its kind."""
        record = self.store.prepare(table, document)
        try:
            record.share(table.kind)
        except InvalidInput as error:
            raise Invalid(str(error)) from error
        rules = table.rules
        if complaint := rules.demands.complaint(document):
            raise Invalid(f"{rules.describe(document)}: {complaint}")
        return record

    def _commit(self, table: ObjectTable, old: ObjectVersion | None, new: ObjectVersion | None) -> None:
        self.store.commit(table, old, new)
        self.housekeeping.after_write()

    def _enter(self, kind: type[Resource], namespace: str, *, all_namespaces: bool = False) -> ObjectTable:
        """The table of the kind, after checking the request's namespace."""
        self.housekeeping.collect_soon()  # what a file brought along, or a loop that ended left undone
        table = self.store.table(kind)
        if kind.api.namespaced and not namespace and not all_namespaces:
            raise Invalid(f"{kind.api.kind} is a namespaced kind: say in which namespace")
        if namespace and not kind.api.namespaced:
            raise Invalid(f"{kind.api.kind} is in no namespace: leave out {namespace!r}")
        return table

    def _existing(self, table: ObjectTable, name: str, namespace: str) -> ObjectVersion:
        record = table.records.get(key_of(namespace, name))
        if record is None:
            raise NotFound(f"{describe(table.kind.api, namespace, name)} does not exist")
        return record

    def _known_version(self, resource_version: str) -> int:
        if not _VERSION.fullmatch(resource_version):
            raise Invalid(
                f"{resource_version!r} is not a valid resource version: use that of a list or of an event"
            )
        version = int(resource_version)
        self._refuse_future(version)
        return version

    def _refuse_future(self, version: int) -> None:
        if version > self.store.version:
            raise Gone(f"version {version} is ahead of this cluster's {self.store.version}: list anew")

    def _writer(self, api: Api, manager: str, subresource: str = "") -> Writer:
        if not manager:
            raise Invalid("a write must name its field manager")
        return Writer(manager, api.api_version, to_time(self.clock.wall()), subresource)

    def _uid(self) -> str:
        return new_uuid(self._randomness)

    def _free_name(self, table: ObjectTable, metadata: dict[str, Any]) -> str:
        prefix = metadata.get("generateName", "")
        if not prefix:
            raise Invalid(
                f"a {table.kind.api.kind} to create must have a name, or a prefix to make one up from"
            )
        name = made_up_name(prefix, self._randomness)
        while key_of(metadata.get("namespace", ""), name) in table.records:
            name = made_up_name(prefix, self._randomness)
        return name


def _selector(kind: type[Resource], selection: ObjectSelection) -> Selector:
    return parse_selector(selection.namespace, selection.fields, selection.labels, kind.api.field_selectors)


def _check_status_subresource(api: Api) -> None:
    if not api.status_subresource:
        raise NotFound(f"{api.kind} has no status of its own to write: write the whole object")


def _patched(kind: type[Resource], before: Document, patch: Document) -> Document:
    """The document after the patch; Invalid when it is not an object of that kind and name any more."""
    document: Document = merge_patched(before, patch)
    try:
        item = from_document(kind, document)
    except InvalidInput as error:
        raise Invalid(str(error)) from error
    place = (item.metadata.namespace, item.metadata.name)
    if place != _place(before):
        raise Invalid(
            f"{describe(kind.api, *_place(before))} cannot be renamed by a patch: leave its name out"
        )
    return document


def _place(document: Document) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata.get("name", "")
