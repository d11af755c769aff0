"""A program's connections to the cluster and to the allocator: what goes over them is recorded, and they can be cut.

Each simulated program has connections of its own, so that the trace says which program wrote, and so that a program that
is killed writes nothing more, whatever its `finally` clauses would still do.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable

from podtide.allocator.containers import AllocatedContainer, MoveResult
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.interceptor import READS, AllocatorInterceptor, AllocatorOperation
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet, SubnetInForce
from podtide.cluster.interceptor import ClusterInterceptor, ClusterRequest, T, WatchRequest
from podtide.cluster.port import Cluster, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.runtime.clock import Clock
from podtide.simulation.trace import AllocatorCall, ClusterWatch, ClusterWrite, Trace

_CLUSTER_READS = frozenset({"get", "list"})
_MOVES = frozenset({"put_container", "delete_container", "move_container", "end_quarantine"})
"""Calls that the allocator finishes, and that are recorded, even if their caller is killed meanwhile."""
_NOT_RECORDED = READS | {"open_term", "close_term"}
"""Reads, and terms: controllers renew theirs every few seconds."""


class RecordingCluster(ClusterInterceptor):
    """The Cluster port as one program uses it.

    A write is recorded once it is answered. `sending` is called with every object that is applied, before it leaves,
    because other programs may act on it before its answer is back.
    """

    def __init__(  # noqa: PLR0913 - the port, which program uses it, and where that is recorded
        self,
        inner: Cluster,
        program: str,
        *,
        clock: Clock,
        trace: Trace,
        of_cluster: str = "",
        sending: Callable[[Resource], None] = lambda _item: None,
    ) -> None:
        super().__init__(inner)
        self._sending = sending
        self._program = program
        self._clock = clock
        self._trace = trace
        self._of_cluster = of_cluster
        self._cut = False

    def cut(self) -> None:
        """Refuse every request from now on."""
        self._cut = True

    async def intercept(self, request: ClusterRequest[T]) -> T:
        """Send the request, and record it if it is a write."""
        self._check()
        if request.verb == "apply" and request.item is not None:
            self._sending(request.item)
        answer = await request.send(self._inner)
        if request.verb not in _CLUSTER_READS:
            self._record(request, answer)
        return answer

    def intercept_watch(self, request: WatchRequest[R]) -> AsyncGenerator[WatchEvent[R], None]:
        """Record the watch, and begin it."""
        self._check()
        self._trace.note(
            ClusterWatch(
                at=self._clock.monotonic(),
                program=self._program,
                kind=request.kind.api.kind,
                fields=request.fields,
                labels=request.labels,
            )
        )
        return request.send(self._inner)

    def _check(self) -> None:
        if self._cut:
            raise Unavailable(f"{self._program} has no connection to the cluster: it was cut")

    def _record(self, request: ClusterRequest[T], answer: object) -> None:
        item = answer if isinstance(answer, Resource) else None
        self._trace.note(
            ClusterWrite(
                at=self._clock.monotonic(),
                program=self._program,
                verb=request.verb,
                kind=request.kind.api.kind,
                name=request.subject if item is None else item.metadata.name,
                item=item,
                cluster=self._of_cluster,
            )
        )


class RecordingAllocator(AllocatorInterceptor):
    """The Allocator port as one program uses it. Reads are not recorded: they change nothing."""

    def __init__(
        self, inner: Allocator, program: str, *, clock: Clock, trace: Trace, of_cluster: str = ""
    ) -> None:
        super().__init__(inner)
        self._program = program
        self._clock = clock
        self._trace = trace
        self._of_cluster = of_cluster
        self._cut = False

    def cut(self) -> None:
        """Refuse every request from now on."""
        self._cut = True

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Send the request, and record it if it is a write."""
        if self._cut:
            raise AllocatorUnavailable(f"{self._program} has no connection to the allocator: it was cut")
        if request.verb in _MOVES:
            return await asyncio.shield(self._carry_out(request))
        return await self._carry_out(request)

    async def _carry_out(self, request: AllocatorOperation[T]) -> T:
        answer = await request.send(self._inner)
        if request.verb not in _NOT_RECORDED:
            self._record(request, answer)
        return answer

    def _record(self, request: AllocatorOperation[T], answer: object) -> None:
        call, in_force = request.verb, SubnetInForce()
        container: AllocatedContainer | None = None
        match answer:
            case AllocatedContainer():
                container = answer
            case MoveResult():
                call, container = ("move_container" if answer.moved else "put_container"), answer.container
            case Subnet() if call == "put_in_force":
                in_force = answer.in_force
        self._trace.note(
            AllocatorCall(
                at=self._clock.monotonic(),
                program=self._program,
                call=call,
                subject=request.subject,
                answer=container,
                batch=in_force.batch,
                exhausted=in_force.exhausted,
                starved=in_force.starved,
                cluster=self._of_cluster,
            )
        )
