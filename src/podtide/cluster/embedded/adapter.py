"""The embedded cluster: the Cluster port over objects in this process, with Kubernetes' semantics.

It is for simulations, demos, tests and laptops. What it leaves out of an API server: it has no admission and no
authorization, every namespace exists, a replace may bind a pod to a node, for which Kubernetes has a subresource, and
the fields of a pod's status have no managers.

Calls are carried out at once, one after the other, and each gives other tasks a turn first, as a network would. Clock
and randomness are parameters: with the same ones, the same calls give the same answers, uids and timestamps included.
"""

import asyncio
import builtins
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from random import Random
from typing import TypeVar, Unpack

from podtide.cluster.embedded.api_server import ApiServer, ApiServerLimits, ObjectSelection
from podtide.cluster.embedded.namespaces import make_namespaces
from podtide.cluster.embedded.records import Document
from podtide.cluster.embedded.store import StoreSnapshot
from podtide.cluster.port import DeletePreconditions, Page, Patch, Selectors, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.codec import to_document
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.randomness import system_randomness

R = TypeVar("R", bound=Resource)


class EmbeddedCluster:
    """A cluster in this process; with `file`, it is kept on disk."""

    def __init__(
        self,
        file: Path | None = None,
        *,
        kinds: Iterable[type[Resource]] = ALL_KINDS,
        clock: Clock | None = None,
        randomness: Random | None = None,
        limits: ApiServerLimits | None = None,
    ) -> None:
        self.server = ApiServer(
            file,
            kinds=kinds,
            clock=clock or SystemClock(),
            randomness=randomness or system_randomness(),
            limits=limits or ApiServerLimits(),
        )
        """The same cluster, document by document: for those who serve it to others."""
        self.restores = 0
        """How often it went back to a snapshot."""

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        await asyncio.sleep(0)
        if kind is Namespace and name == SYSTEM_NAMESPACE:
            make_namespaces(self.server, [name])
        return self.server.get(kind, name, namespace).decode(kind)

    async def list(
        self, kind: type[R], namespace: str = "", *, limit: int = 0, more: str = "", **by: Unpack[Selectors]
    ) -> Page[R]:
        await asyncio.sleep(0)
        selection = ObjectSelection(namespace=namespace, **by)
        listing = self.server.list(kind, selection, limit=limit, more=more)
        items = [record.decode(kind) for record in listing.records]
        return Page(items, str(listing.version), listing.more)

    async def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, **by: Unpack[Selectors]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        await asyncio.sleep(0)
        selection = ObjectSelection(namespace=namespace, **by)
        with self.server.watching(kind, selection, resource_version) as watcher:
            unread = watcher.unread
            while unread or await watcher.news():
                yield unread.popleft().event(kind)

    async def create(self, item: R, *, manager: str) -> R:
        await asyncio.sleep(0)
        return self.server.create(type(item), _document(item), manager=manager).shared(type(item))

    async def replace(self, item: R, *, manager: str) -> R:
        await asyncio.sleep(0)
        return self.server.replace(type(item), _document(item), manager=manager).shared(type(item))

    async def replace_status(self, item: R, *, manager: str) -> R:
        await asyncio.sleep(0)
        return self.server.replace_status(type(item), _document(item), manager=manager).shared(type(item))

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        await asyncio.sleep(0)
        document = _document(item, keep_unknown=False)
        return self.server.apply(type(item), document, manager=manager, force=force).shared(type(item))

    async def patch(self, patch: Patch[R], *, manager: str) -> R:
        await asyncio.sleep(0)
        return self.server.patch(patch, manager=manager).shared(patch.kind)

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        await asyncio.sleep(0)
        self.server.delete(
            kind, name, namespace, DeletePreconditions(uid=uid, resource_version=resource_version)
        )

    def items(self, kind: type[R]) -> builtins.list[R]:
        """All objects of a kind at this very instant."""
        return [record.decode(kind) for record in self.server.list(kind, ObjectSelection()).records]

    def snapshot(self) -> StoreSnapshot:
        """A snapshot of all objects for `restore`, the namespace whose uid identifies the cluster included."""
        make_namespaces(self.server, [SYSTEM_NAMESPACE])
        return self.server.store.snapshot()

    def restore(self, snapshot: StoreSnapshot) -> None:
        """Go back to a snapshot: objects and the counter of resourceVersions are as they were then, and watches end."""
        self.server.restore(snapshot)
        self.restores += 1

    def close(self) -> None:
        """End every watch and close the file."""
        self.server.close()


def _document(item: Resource, *, keep_unknown: bool = True) -> Document:
    """The item as a document that the server may keep; what it shares with the item's original is not changed."""
    document = to_document(item, keep_unknown=keep_unknown)
    document["metadata"] = dict(document.get("metadata", {}))
    return document
