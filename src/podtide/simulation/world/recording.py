"""A program's lines to the cluster and to the allocator: what goes over them is put on record, and they can be cut.

Each simulated program has lines of its own, so that the trace says who wrote, and so that a program that is killed
writes nothing more, whatever its `finally` clauses would still like to do.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

from podtide.allocator.port import (
    AllocatedContainer,
    Allocator,
    AllocatorUnavailable,
    Bounds,
    CidrHolders,
    ContainerPage,
    Debt,
    MoveResult,
    QuarantinePage,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    Utilization,
    Wish,
)
from podtide.allocator.terms import HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.cluster.port import Cluster, Page, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.runtime.clock import Clock
from podtide.simulation.trace import AllocatorCall, ClusterWatch, ClusterWrite, Trace

T = TypeVar("T")


class RecordingCluster:
    """The Cluster port as one program uses it.

    A write is on record once it is answered; `sending` is told what is applied before it leaves, because others may
    act on it before its answer is back.
    """

    def __init__(  # noqa: PLR0913 - the port, whose line it is, and where that is put on record
        self,
        inner: Cluster,
        program: str,
        *,
        clock: Clock,
        trace: Trace,
        of_cluster: str = "",
        sending: Callable[[Resource], None] = lambda _item: None,
    ) -> None:
        self._inner = inner
        self._sending = sending
        self._program = program
        self._clock = clock
        self._trace = trace
        self._of_cluster = of_cluster
        self._cut = False

    def cut(self) -> None:
        """Nothing gets through any more."""
        self._cut = True

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """See `Cluster.get`."""
        self._check()
        return await self._inner.get(kind, name, namespace)

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
        self._check()
        return await self._inner.list(kind, namespace, fields=fields, labels=labels, limit=limit, more=more)

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
        self._check()
        self._trace.note(
            ClusterWatch(
                at=self._clock.monotonic(),
                program=self._program,
                kind=kind.api.kind,
                fields=fields,
                labels=labels,
            )
        )
        return self._inner.watch(
            kind, namespace, resource_version=resource_version, fields=fields, labels=labels
        )

    async def create(self, item: R, *, manager: str) -> R:
        """See `Cluster.create`."""
        self._check()
        return self._wrote("create", await self._inner.create(item, manager=manager))

    async def replace(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace`."""
        self._check()
        return self._wrote("replace", await self._inner.replace(item, manager=manager))

    async def replace_status(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace_status`."""
        self._check()
        return self._wrote("replace_status", await self._inner.replace_status(item, manager=manager))

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """See `Cluster.apply`."""
        self._check()
        self._sending(item)
        return self._wrote("apply", await self._inner.apply(item, manager=manager, force=force))

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See `Cluster.delete`."""
        self._check()
        await self._inner.delete(kind, name, namespace, uid=uid, resource_version=resource_version)
        self._record("delete", kind, name, None)

    def _check(self) -> None:
        if self._cut:
            raise Unavailable(f"{self._program} has no connection to the cluster: it was cut")

    def _wrote(self, verb: str, answer: R) -> R:
        self._record(verb, type(answer), answer.metadata.name, answer)
        return answer

    def _record(self, verb: str, kind: type[Resource], name: str, item: Resource | None) -> None:
        self._trace.note(
            ClusterWrite(
                at=self._clock.monotonic(),
                program=self._program,
                verb=verb,
                kind=kind.api.kind,
                name=name,
                item=item,
                cluster=self._of_cluster,
            )
        )


class RecordingAllocator:
    """The Allocator port as one program uses it. Reads are not recorded: they change nothing."""

    def __init__(
        self, inner: Allocator, program: str, *, clock: Clock, trace: Trace, of_cluster: str = ""
    ) -> None:
        self._inner = inner
        self._program = program
        self._clock = clock
        self._trace = trace
        self._of_cluster = of_cluster
        self._cut = False

    def cut(self) -> None:
        """Nothing gets through any more."""
        self._cut = True

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """See `Allocator.add_subnet`."""
        self._check()
        answer = await self._inner.add_subnet(spec)
        self._record("add_subnet", spec.name)
        return answer

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """See `Allocator.grow_subnet`."""
        self._check()
        answer = await self._inner.grow_subnet(network, name, cidrs, gateways)
        self._record("grow_subnet", name)
        return answer

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """See `Allocator.shrink_subnet`."""
        self._check()
        answer = await self._inner.shrink_subnet(network, name, cidrs, at_once=at_once)
        self._record("shrink_subnet", name)
        return answer

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """See `Allocator.holders`."""
        self._check()
        return await self._inner.holders(network, name, cidr)

    async def remove_subnet(self, network: str, name: str) -> None:
        """See `Allocator.remove_subnet`."""
        self._check()
        await self._inner.remove_subnet(network, name)
        self._record("remove_subnet", name)

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """See `Allocator.get_subnet`."""
        self._check()
        return await self._inner.get_subnet(network, name)

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """See `Allocator.list_subnets`."""
        self._check()
        return await self._inner.list_subnets(network)

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """See `Allocator.put_container`."""
        self._check()
        return await _whoever_waits(self._put(wish))

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """See `Allocator.delete_container`."""
        self._check()
        await _whoever_waits(self._delete(container_id, cluster, cluster_uid))

    async def move_container(self, wish: Wish) -> MoveResult:
        """See `Allocator.move_container`."""
        self._check()
        return await _whoever_waits(self._move(wish))

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """See `Allocator.quarantined`."""
        self._check()
        return await self._inner.quarantined(cluster=cluster, node=node, due=due, limit=limit, more=more)

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        """See `Allocator.end_quarantine`."""
        self._check()
        return await _whoever_waits(
            self._end_quarantine(container_id, addresses, cluster, cluster_uid, reason)
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """See `Allocator.get_container`."""
        self._check()
        return await self._inner.get_container(container_id, cluster=cluster)

    async def list_containers(  # noqa: PLR0913 - the port's
        self,
        *,
        cluster: str = "",
        node: str = "",
        network: str = "",
        subnet: str = "",
        limit: int = 500,
        more: str = "",
    ) -> ContainerPage:
        """See `Allocator.list_containers`."""
        self._check()
        return await self._inner.list_containers(
            cluster=cluster, node=node, network=network, subnet=subnet, limit=limit, more=more
        )

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """See `Allocator.owed`."""
        self._check()
        return await self._inner.owed(network, name)

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """See `Allocator.set_bounds`."""
        self._check()
        await self._inner.set_bounds(network, name, cluster=cluster, bounds=bounds)
        self._record("set_bounds", name)

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """See `Allocator.demand`."""
        self._check()
        return await self._inner.demand(network, name)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """See `Allocator.put_in_force`."""
        self._check()
        answer = await self._inner.put_in_force(network, name, decided)
        self._record("put_in_force", name, batch=answer.in_force.batch)
        return answer

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """See `Allocator.utilization`."""
        self._check()
        return await self._inner.utilization(network, name)

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """See `Allocator.history`."""
        self._check()
        return await self._inner.history(network, name, since=since, until=until)

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """See `Allocator.open_term`. A term that is renewed is no news, so it is not recorded."""
        self._check()
        return await self._inner.open_term(claim)

    async def close_term(self, claim: TermClaim) -> None:
        """See `Allocator.close_term`."""
        self._check()
        await self._inner.close_term(claim)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """See `Allocator.adopt_container`."""
        self._check()
        answer = await self._inner.adopt_container(held)
        self._record("adopt_container", held.node)
        return answer

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """See `Allocator.keep_for_pods`."""
        self._check()
        kept = await self._inner.keep_for_pods(shown)
        self._record("keep_for_pods", shown.node)
        return kept

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """See `Allocator.finish_report`."""
        self._check()
        await self._inner.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery)
        self._record("finish_report", cluster)

    def _check(self) -> None:
        if self._cut:
            raise AllocatorUnavailable(f"{self._program} has no connection to the allocator: it was cut")

    async def _put(self, wish: Wish) -> AllocatedContainer:
        answer = await self._inner.put_container(wish)
        self._record("put_container", wish.node, answer)
        return answer

    async def _move(self, wish: Wish) -> MoveResult:
        answer = await self._inner.move_container(wish)
        self._record("move_container" if answer.moved else "put_container", wish.node, answer.container)
        return answer

    async def _end_quarantine(
        self, container_id: str, addresses: tuple[str, ...], cluster: str, cluster_uid: str, reason: str
    ) -> int:
        ended = await self._inner.end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
        )
        self._record("end_quarantine", container_id)
        return ended

    async def _delete(self, container_id: str, cluster: str, cluster_uid: str) -> None:
        await self._inner.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid)
        self._record("delete_container", container_id)

    def _record(
        self, call: str, subject: str, answer: AllocatedContainer | None = None, batch: int = 0
    ) -> None:
        self._trace.note(
            AllocatorCall(
                at=self._clock.monotonic(),
                program=self._program,
                call=call,
                subject=subject,
                answer=answer,
                batch=batch,
                cluster=self._of_cluster,
            )
        )


async def _whoever_waits(call: Coroutine[Any, Any, T]) -> T:
    """Carry out a call that the allocator finishes, and that is put on record, even if its caller dies meanwhile."""
    return await asyncio.shield(asyncio.create_task(call))
