"""The embedded cluster: the Cluster port over objects in this process, with Kubernetes' semantics.

It is for simulations, demos, tests and laptops. What it leaves out of an API server: it has no admission and no
authorization, every namespace exists, and a replace may bind a pod to a node, for which Kubernetes has a subresource.

Calls are carried out at once, one after the other, and each gives other tasks a turn first, as a network would. Clock
and randomness are parameters: with the same ones, the same calls give the same answers, uids and timestamps included.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from podtide.cluster.embedded.housekeeping import Housekeeping
from podtide.cluster.embedded.managed_fields import Writer
from podtide.cluster.embedded.naming import made_up_name
from podtide.cluster.embedded.paging import Position, from_token, to_token
from podtide.cluster.embedded.records import Document, Record, key_of
from podtide.cluster.embedded.selectors import parse_selector
from podtide.cluster.embedded.store import Store
from podtide.cluster.embedded.table import Table
from podtide.cluster.embedded.watchers import Sighting, Watcher
from podtide.cluster.embedded.writing import (
    applied,
    check_preconditions,
    created,
    describe,
    first_applied,
    is_released,
    replaced,
    rules_of,
    status_replaced,
)
from podtide.cluster.port import (
    AlreadyExists,
    Change,
    Conflict,
    Gone,
    Invalid,
    NotFound,
    Page,
    WatchEvent,
)
from podtide.core.errors import InvalidInput
from podtide.resources.base import Api, Resource
from podtide.resources.codec import to_document
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.ids import new_uuid
from podtide.runtime.randomness import system_randomness

R = TypeVar("R", bound=Resource)


class Limits(Struct, frozen=True, kw_only=True):
    """How long the cluster remembers, and how long it waits."""

    history: int = 10_000
    """Writes per kind that a watch or a list in pages can go back."""
    unread: int = 1_000
    """Events a watcher may leave unread before it is dropped."""
    bookmark_seconds: float = 60.0
    """How long after a write every watch has an event or a bookmark that is newer."""
    watch_seconds: float | None = None
    """How long a watch lasts before the server closes it."""


class EmbeddedCluster:
    """A cluster in this process; with `file`, one that is still there after the process."""

    def __init__(
        self,
        file: Path | None = None,
        *,
        kinds: Iterable[type[Resource]] = ALL_KINDS,
        clock: Clock | None = None,
        randomness: Random | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._randomness = randomness or system_randomness()
        self._store = Store(kinds, self._limits.history, file)
        self._housekeeping = Housekeeping(self._store, self._clock, self._limits.bookmark_seconds)

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """See `Cluster.get`."""
        await self._turn()
        table = self._table(kind, namespace)
        return self._existing(table, name, namespace).decode(kind)

    async def list(  # noqa: PLR0913 - the port's
        self,
        kind: type[R],
        namespace: str = "",
        *,
        fields: str = "",
        labels: str = "",
        limit: int = 0,
        more: str = "",
    ) -> Page[R]:
        """See `Cluster.list`."""
        await self._turn()
        table = self._table(kind, namespace, all_namespaces=True)
        selector = parse_selector(namespace, fields, labels, kind.api.field_selectors)
        if more:
            position = from_token(more)
            self._refuse_future(position.version)
            records, rest = table.select(
                selector, version=position.version, start=position.start, limit=limit
            )
        else:
            position = Position(self._store.version, "")
            records, rest = table.select(selector, limit=limit)
        return Page(
            items=[record.decode(kind) for record in records],
            resource_version=str(position.version),
            more=to_token(Position(position.version, rest)) if rest else "",
        )

    async def watch(
        self,
        kind: type[R],
        namespace: str = "",
        *,
        resource_version: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """See `Cluster.watch`."""
        await self._turn()
        table = self._table(kind, namespace, all_namespaces=True)
        selector = parse_selector(namespace, fields, labels, kind.api.field_selectors)
        seen = self._known_version(resource_version)
        watcher = Watcher(selector, seen, self._limits.unread)
        watcher.replay(table.since(seen))
        lasting = self._limits.watch_seconds
        until = None if lasting is None else asyncio.get_running_loop().time() + lasting
        if seen < self._store.version:
            self._housekeeping.bookmark_later()
        table.watchers.add(watcher)
        try:
            while await watcher.news(until):
                yield _event(kind, watcher.unread.popleft())
        finally:
            table.watchers.remove(watcher)

    async def create(self, item: R, *, manager: str) -> R:
        """See `Cluster.create`."""
        await self._turn()
        kind, document = type(item), _document(item)
        table = self._table(kind, item.metadata.namespace)
        if item.metadata.resource_version:
            raise Invalid(
                f"{describe(kind.api, *_place(item))} is to be created: leave out its resource version"
            )
        return self._create(kind, table, document, self._writer(kind.api, manager))

    async def replace(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace`."""
        await self._turn()
        kind, document = type(item), _document(item)
        table, rules = self._table(kind, item.metadata.namespace), rules_of(kind)
        writer = self._writer(kind.api, manager)
        old = table.records.get(key_of(*_place(item)))
        if old is None and rules.habits.replace_creates:
            if item.metadata.uid:
                raise Conflict(
                    f"{describe(kind.api, *_place(item))} with uid {item.metadata.uid} is gone: read again"
                )
            return self._create(kind, table, document, writer)
        old = self._existing(table, item.metadata.name, item.metadata.namespace)
        before = old.document()
        return self._update(kind, table, old, before, replaced(before, document, rules, writer))

    async def replace_status(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace_status`."""
        await self._turn()
        kind, document = type(item), _document(item)
        table = self._table(kind, item.metadata.namespace)
        if not kind.api.status_subresource:
            raise NotFound(f"{kind.api.kind} has no status of its own to replace: replace the whole object")
        writer = self._writer(kind.api, manager, subresource="status")
        old = self._existing(table, item.metadata.name, item.metadata.namespace)
        before = old.document()
        return self._update(
            kind, table, old, before, status_replaced(before, document, rules_of(kind), writer)
        )

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """See `Cluster.apply`."""
        await self._turn()
        kind, document = type(item), _document(item, keep_unknown=False)
        table, rules = self._table(kind, item.metadata.namespace), rules_of(kind)
        writer = self._writer(kind.api, manager)
        old = table.records.get(key_of(*_place(item)))
        if old is None:
            return self._add(kind, table, first_applied(document, rules, writer, self._uid()))
        before = old.document()
        return self._update(kind, table, old, before, applied(before, document, rules, writer, force=force))

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See `Cluster.delete`."""
        await self._turn()
        table, rules = self._table(kind, namespace), rules_of(kind)
        old = self._existing(table, name, namespace)
        expected = {"uid": uid, "resourceVersion": resource_version}
        check_preconditions(old.document(), rules, {name: value for name, value in expected.items() if value})
        self._store.delete(table, old, self._clock.wall())
        self._housekeeping.after_write()

    def expire_history(self) -> None:
        """Forget what happened before now, as compaction does: older versions and tokens are Gone."""
        self._store.forget_history()

    def close_watches(self) -> None:
        """End every watch, as a server that restarts does; watchers may resume."""
        self._store.close_watches()

    def close(self) -> None:
        """End every watch and let the file go."""
        self._housekeeping.stop()
        self._store.close()

    def _create(self, kind: type[R], table: Table, document: Document, writer: Writer) -> R:
        metadata = document["metadata"]
        if "name" not in metadata:
            metadata["name"] = self._free_name(table, metadata)
        key = key_of(metadata.get("namespace", ""), metadata["name"])
        if key in table.records:
            raise AlreadyExists(
                f"{describe(kind.api, *key.split('/'))} exists already: replace it, or use another name"
            )
        return self._add(kind, table, created(document, rules_of(kind), writer, self._uid()))

    def _add(self, kind: type[R], table: Table, document: Document) -> R:
        record = self._store.prepare(table, document)
        answer = _decoded(kind, record)
        self._commit(table, None, record)
        return answer

    def _update(self, kind: type[R], table: Table, old: Record, before: Document, after: Document) -> R:
        if after is before or after == before:
            return old.decode(kind)
        record = self._store.prepare(table, after)
        answer = _decoded(kind, record)
        self._commit(table, old, None if is_released(after) else record)
        return answer

    def _commit(self, table: Table, old: Record | None, new: Record | None) -> None:
        self._store.commit(table, old, new)
        self._housekeeping.after_write()

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        self._housekeeping.collect_soon()

    def _table(self, kind: type[Resource], namespace: str, *, all_namespaces: bool = False) -> Table:
        table = self._store.table(kind)
        if kind.api.namespaced and not namespace and not all_namespaces:
            raise Invalid(f"{kind.api.kind} is a namespaced kind: say in which namespace")
        if namespace and not kind.api.namespaced:
            raise Invalid(f"{kind.api.kind} is in no namespace: leave out {namespace!r}")
        return table

    def _existing(self, table: Table, name: str, namespace: str) -> Record:
        record = table.records.get(key_of(namespace, name))
        if record is None:
            raise NotFound(f"{describe(table.kind.api, namespace, name)} does not exist")
        return record

    def _known_version(self, resource_version: str) -> int:
        if not resource_version.isdecimal():
            raise Invalid(f"{resource_version!r} is no resource version: use that of a list or of an event")
        version = int(resource_version)
        self._refuse_future(version)
        return version

    def _refuse_future(self, version: int) -> None:
        if version > self._store.version:
            raise Gone(f"version {version} is ahead of this cluster's {self._store.version}: list anew")

    def _writer(self, api: Api, manager: str, subresource: str = "") -> Writer:
        if not manager:
            raise Invalid("a write must name its field manager")
        return Writer(manager, api.api_version, to_time(self._clock.wall()), subresource)

    def _uid(self) -> str:
        return new_uuid(self._randomness)

    def _free_name(self, table: Table, metadata: dict[str, Any]) -> str:
        prefix = metadata.get("generateName", "")
        if not prefix:
            raise Invalid(
                f"a {table.kind.api.kind} to create must have a name, or a prefix to make one up from"
            )
        name = made_up_name(prefix, self._randomness)
        while key_of(metadata.get("namespace", ""), name) in table.records:
            name = made_up_name(prefix, self._randomness)
        return name


def _document(item: Resource, *, keep_unknown: bool = True) -> Document:
    document = to_document(item, keep_unknown=keep_unknown)
    return {**document, "metadata": dict(document.get("metadata", {}))}


def _place(item: Resource) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


def _decoded(kind: type[R], record: Record) -> R:
    """The object as its writer gets it; Invalid when it does not fit its kind."""
    try:
        return record.decode(kind)
    except InvalidInput as error:
        raise Invalid(str(error)) from error


def _event(kind: type[R], sighting: Sighting) -> WatchEvent[R]:
    version = str(sighting.version)
    if sighting.transition is None:
        return WatchEvent(Change.BOOKMARK, None, version)
    if sighting.change is Change.DELETED:
        return WatchEvent(Change.DELETED, sighting.transition.departed.shared(kind), version)
    assert sighting.transition.new is not None, "what is there to see has a new version"
    return WatchEvent(sighting.change, sighting.transition.new.shared(kind), version)
