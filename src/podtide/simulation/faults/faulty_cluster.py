"""The Cluster port of one program, under the faults that are active."""

from collections.abc import AsyncGenerator, Callable
from functools import partial

from msgspec import structs

from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, ListRequest, WatchRequest
from podtide.cluster.port import Cluster, Page, R, WatchEvent
from podtide.resources.base import Resource
from podtide.simulation.checks.premature_requests import Hearsay
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import CLUSTER, Request, T


class FaultyCluster(ClusterInterceptor):
    """`line` ends with the program; over `wire` goes what has left it already."""

    def __init__(  # noqa: PLR0913 - two ways there, which program uses them, and what may happen on them
        self,
        line: Cluster,
        wire: Cluster,
        program: str,
        conditions: Conditions,
        hearsay: Hearsay,
        *,
        restores: Callable[[], int] = int,
    ) -> None:
        super().__init__(line)
        self._wire = wire
        self._program = program
        self._conditions = conditions
        self._hearsay = hearsay
        self._restores = restores
        """How often the cluster went back to a backup."""

    async def intercept(self, request: ClusterRequest[T]) -> T:
        """Send the request under the conditions.

        etcd is restored while the API servers are stopped: what was sent to one of those before is not carried out, and
        its answer does not arrive. Only a request to create an object may be repeated at any later time.
        """
        if request.verb == "apply" and request.item is not None:
            self._hearsay.says(request.item)
        sent, before = self._request(request.verb, request.kind, request.subject), self._restores()

        async def arrive(over: Cluster) -> T:
            self._refuse_if_restored(sent, before)
            return await request.send(over)

        resend = request.send if request.verb == "create" else arrive
        answer = await self._conditions.carry(sent, partial(arrive, self._inner), partial(resend, self._wire))
        self._refuse_if_restored(sent, before)
        return answer

    async def intercept_list(self, request: ListRequest[R]) -> Page[R]:
        """Send the list under the conditions; its first page may be a stale one."""
        sent = self._request("list", request.kind, request.fields or request.labels)
        before = self._restores()

        async def relist(token: str) -> Page[R]:
            return await structs.replace(request, more=token).send(self._inner)

        page = await super().intercept_list(request)
        if not request.more:
            page = await self._conditions.page(sent, page, relist)
            self._refuse_if_restored(sent, before)
        if not page.more:
            self._hearsay.told(sent.subject)
        return page

    def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        """Watch under the conditions."""
        sent = self._request("watch", request.kind, request.fields or request.labels)
        events = self._conditions.watch(sent, request.send(self._inner))
        return self._until_restored(sent, events)

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

    def _request(self, verb: str, kind: type[Resource], what: str) -> Request:
        subject = f"{kind.api.kind} {what}".rstrip()
        return Request(program=self._program, port=CLUSTER, verb=verb, subject=subject)
