"""The Cluster port of one program, under the conditions that there are."""

from collections.abc import AsyncGenerator, Callable
from functools import partial

from podtide.cluster.port import Cluster, Page, R, WatchEvent
from podtide.resources.base import Resource
from podtide.simulation.checks.premature_requests import Hearsay
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import CLUSTER, Request, Send, T


class FaultyCluster:
    """`line` ends with the program; over `wire` goes what has left it already."""

    def __init__(  # noqa: PLR0913 - two ways there, whose they are, and what may befall them
        self,
        line: Cluster,
        wire: Cluster,
        program: str,
        conditions: Conditions,
        hearsay: Hearsay,
        *,
        restores: Callable[[], int] = int,
    ) -> None:
        self._line = line
        self._wire = wire
        self._program = program
        self._conditions = conditions
        self._hearsay = hearsay
        self._restores = restores
        """How often the cluster went back to a backup."""

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """See `Cluster.get`."""
        return await self._carry(
            self._request("get", kind, name),
            lambda: self._line.get(kind, name, namespace),
            lambda: self._wire.get(kind, name, namespace),
        )

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
        request, before = self._request("list", kind, fields or labels), self._restores()

        async def read(token: str) -> Page[R]:
            return await self._line.list(
                kind, namespace, fields=fields, labels=labels, limit=limit, more=token
            )

        page = await self._carry(request, lambda: read(more), lambda: read(more))
        if not more:
            page = await self._conditions.page(request, page, read)
            self._refuse_if_restored(request, before)
        if not page.more:
            self._hearsay.told(request.subject)
        return page

    def watch(
        self,
        kind: type[R],
        namespace: str = "",
        *,
        resource_version: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """See `Cluster.watch`."""
        request = self._request("watch", kind, fields or labels)
        events = self._line.watch(
            kind, namespace, resource_version=resource_version, fields=fields, labels=labels
        )
        return self._until_restored(request, self._conditions.watch(request, events))

    async def create(self, item: R, *, manager: str) -> R:
        """See `Cluster.create`."""
        return await self._carry(
            self._about("create", item),
            lambda: self._line.create(item, manager=manager),
            lambda: self._wire.create(item, manager=manager),
        )

    async def replace(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace`."""
        return await self._carry(
            self._about("replace", item),
            lambda: self._line.replace(item, manager=manager),
            lambda: self._wire.replace(item, manager=manager),
        )

    async def replace_status(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace_status`."""
        return await self._carry(
            self._about("replace_status", item),
            lambda: self._line.replace_status(item, manager=manager),
            lambda: self._wire.replace_status(item, manager=manager),
        )

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """See `Cluster.apply`."""
        self._hearsay.says(item)
        return await self._carry(
            self._about("apply", item),
            lambda: self._line.apply(item, manager=manager, force=force),
            lambda: self._wire.apply(item, manager=manager, force=force),
        )

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See `Cluster.delete`."""
        await self._carry(
            self._request("delete", kind, name),
            lambda: self._line.delete(kind, name, namespace, uid=uid, resource_version=resource_version),
            lambda: self._wire.delete(kind, name, namespace, uid=uid, resource_version=resource_version),
        )

    async def _carry(self, request: Request, send: Send[T], resend: Send[T]) -> T:
        """Carry out a request. Whoever restores etcd stops the API servers first: what was sent to those arrives nowhere.

        But for a request to make an object, which somebody may repeat whenever he likes.
        """
        before = self._restores()

        async def arrive(send: Send[T]) -> T:
            self._refuse_if_restored(request, before)
            return await send()

        repeated = resend if request.verb == "create" else partial(arrive, resend)
        answer = await self._conditions.carry(request, partial(arrive, send), repeated)
        self._refuse_if_restored(request, before)
        return answer

    async def _until_restored(
        self, request: Request, events: AsyncGenerator[WatchEvent[R], None]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """A watch ends with its API server: what it had left to tell is of another history."""
        before = self._restores()
        try:
            async for event in events:
                self._refuse_if_restored(request, before)
                yield event
        finally:
            await events.aclose()

    def _refuse_if_restored(self, request: Request, before: int) -> None:
        """Answers of an API server that is gone arrive nowhere, either."""
        if self._restores() != before:
            raise request.unanswered("the API server that it was sent to is gone")

    def _about(self, verb: str, item: Resource) -> Request:
        return self._request(verb, type(item), item.metadata.name)

    def _request(self, verb: str, kind: type[Resource], what: str) -> Request:
        subject = f"{kind.api.kind} {what}".rstrip()
        return Request(program=self._program, port=CLUSTER, verb=verb, subject=subject)
