"""A Cluster port in front of another one, through which every request passes as a value.

Recording, injected faults and counting treat all methods of the port alike. They subclass `ClusterInterceptor` and
override `intercept`, and where a list or a watch needs more than that, `intercept_list` or `intercept_watch`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar, Unpack

from msgspec import Struct

from podtide.cluster.port import Cluster, Page, Patch, R, Selectors, WatchEvent
from podtide.resources.base import Resource

T = TypeVar("T")


class ClusterRequest(Struct, Generic[T], frozen=True, kw_only=True):
    """One call of a method of the port, except `watch`."""

    verb: str
    """The name of the method."""
    kind: type[Resource]
    subject: str
    """The name of the object; for a list, its selector."""
    item: Resource | None = None
    """The object that is written; None for get, list, patch and delete."""
    send: Callable[[Cluster], Awaitable[T]]
    """Makes the same call on another cluster. It may be used any number of times."""


class ListRequest(Struct, Generic[R], frozen=True, kw_only=True):
    """The arguments of `Cluster.list`."""

    kind: type[R]
    namespace: str
    fields: str = ""
    labels: str = ""
    limit: int
    more: str

    async def send(self, cluster: Cluster) -> Page[R]:
        """The page that a cluster answers."""
        selectors = Selectors(fields=self.fields, labels=self.labels)
        return await cluster.list(self.kind, self.namespace, limit=self.limit, more=self.more, **selectors)


class WatchRequest(Struct, Generic[R], frozen=True, kw_only=True):
    """The arguments of `Cluster.watch`."""

    kind: type[R]
    namespace: str
    resource_version: str
    fields: str = ""
    labels: str = ""

    def send(self, cluster: Cluster) -> AsyncGenerator[WatchEvent[R], None]:
        """The events of a cluster."""
        selectors = Selectors(fields=self.fields, labels=self.labels)
        return cluster.watch(self.kind, self.namespace, resource_version=self.resource_version, **selectors)


class ClusterInterceptor(Cluster):
    """Passes every request on to the cluster behind it, unless a subclass overrides how."""

    def __init__(self, inner: Cluster) -> None:
        self._inner = inner

    async def intercept(self, request: ClusterRequest[T]) -> T:
        """Called for every request except a watch."""
        return await request.send(self._inner)

    async def intercept_list(self, request: ListRequest[R]) -> Page[R]:
        """Called for every list; passes it to `intercept`."""
        return await self.intercept(
            ClusterRequest(
                verb="list",
                kind=request.kind,
                subject=request.fields or request.labels,
                send=request.send,
            )
        )

    def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        """Called for every watch."""
        return request.send(self._inner)

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        return await self.intercept(
            ClusterRequest(
                verb="get", kind=kind, subject=name, send=lambda cluster: cluster.get(kind, name, namespace)
            )
        )

    async def list(
        self, kind: type[R], namespace: str = "", *, limit: int = 0, more: str = "", **by: Unpack[Selectors]
    ) -> Page[R]:
        return await self.intercept_list(
            ListRequest(kind=kind, namespace=namespace, limit=limit, more=more, **by)
        )

    def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, **by: Unpack[Selectors]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        return self.intercept_watch(
            WatchRequest(kind=kind, namespace=namespace, resource_version=resource_version, **by)
        )

    async def create(self, item: R, *, manager: str) -> R:
        return await self._write("create", item, lambda cluster: cluster.create(item, manager=manager))

    async def replace(self, item: R, *, manager: str) -> R:
        return await self._write("replace", item, lambda cluster: cluster.replace(item, manager=manager))

    async def replace_status(self, item: R, *, manager: str) -> R:
        return await self._write(
            "replace_status", item, lambda cluster: cluster.replace_status(item, manager=manager)
        )

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        return await self._write(
            "apply", item, lambda cluster: cluster.apply(item, manager=manager, force=force)
        )

    async def patch(self, patch: Patch[R], *, manager: str) -> R:
        return await self.intercept(
            ClusterRequest(
                verb="patch",
                kind=patch.kind,
                subject=patch.name,
                send=lambda cluster: cluster.patch(patch, manager=manager),
            )
        )

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        await self.intercept(
            ClusterRequest(
                verb="delete",
                kind=kind,
                subject=name,
                send=lambda cluster: cluster.delete(
                    kind, name, namespace, uid=uid, resource_version=resource_version
                ),
            )
        )

    async def _write(self, verb: str, item: R, send: Callable[[Cluster], Awaitable[R]]) -> R:
        return await self.intercept(
            ClusterRequest(verb=verb, kind=type(item), subject=item.metadata.name, item=item, send=send)
        )
