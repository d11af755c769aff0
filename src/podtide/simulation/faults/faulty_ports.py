"""The Cluster and Allocator ports of one program, under the faults that are active.

Each has two connections to the real port: `line` is cut when the program is killed; over `wire` goes what has left the
program before that.
"""

from collections.abc import AsyncGenerator, Callable
from functools import partial

from msgspec import structs

from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation
from podtide.allocator.port import Allocator
from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, ListRequest, WatchRequest
from podtide.cluster.port import Cluster, Page, R, WatchEvent
from podtide.resources.base import Resource
from podtide.simulation.checks.premature_requests import PrematureRequests
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import ALLOCATOR, CLUSTER, LineRequest, T


class FaultyCluster(ClusterInterceptor):
    """The Cluster port of one program."""

    def __init__(  # noqa: PLR0913 - two ways there, which program uses them, and what may happen on them
        self,
        line: Cluster,
        wire: Cluster,
        program: str,
        conditions: Conditions,
        premature_requests: PrematureRequests,
        *,
        restores: Callable[[], int] = int,
    ) -> None:
        super().__init__(line)
        self._wire = wire
        self._program = program
        self._conditions = conditions
        self._premature_requests = premature_requests
        self._restores = restores
        """How often the cluster was restored from a backup."""

    async def intercept(self, request: ClusterRequest[T]) -> T:
        """Send the request under the conditions.

        etcd is restored while the API servers are stopped: what was sent to one of those before is not carried out, and
        its answer does not arrive. Only a request to create an object may be repeated at any later time.
        """
        if request.verb == "apply" and request.item is not None:
            self._premature_requests.check(request.item)
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
            self._premature_requests.listed(sent.subject)
        return page

    def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        """Watch under the conditions."""
        sent = self._request("watch", request.kind, request.fields or request.labels)
        events = self._conditions.watch(sent, request.send(self._inner))
        return self._until_restored(sent, events)

    async def _until_restored(
        self, request: LineRequest, events: AsyncGenerator[WatchEvent[R], None]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The events until the cluster is restored: a watch ends with its API server, and its later events never happened."""
        before = self._restores()
        try:
            async for event in events:
                self._refuse_if_restored(request, before)
                yield event
        finally:
            await events.aclose()

    def _refuse_if_restored(self, request: LineRequest, before: int) -> None:
        """Fail if the API server that the request was sent to has been stopped."""
        if self._restores() != before:
            raise request.unanswered("the API server that it was sent to is gone")

    def _request(self, verb: str, kind: type[Resource], what: str) -> LineRequest:
        subject = f"{kind.api.kind} {what}".rstrip()
        return LineRequest(program=self._program, port=CLUSTER, verb=verb, subject=subject)


class FaultyAllocator(AllocatorInterceptor):
    """The Allocator port of one program."""

    def __init__(self, line: Allocator, wire: Allocator, program: str, conditions: Conditions) -> None:
        super().__init__(line)
        self._wire = wire
        self._program = program
        self._conditions = conditions

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Send the request under the conditions."""
        return await self._conditions.carry(
            LineRequest(program=self._program, port=ALLOCATOR, verb=request.verb, subject=request.subject),
            partial(request.send, self._inner),
            partial(request.send, self._wire),
        )
