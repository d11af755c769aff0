"""An Allocator port in front of another one, through which every request passes as a value.

Recording, injected faults, fencing and authority treat all methods of the port alike. They subclass
`AllocatorInterceptor` and override `intercept`.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, Unpack

from msgspec import Struct

from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerFilter,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import QuarantineFilter, QuarantinePage
from podtide.allocator.subnets import (
    Bounds,
    CidrHolders,
    Debt,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    SubnetUsage,
    UsageStep,
    Utilization,
)
from podtide.allocator.terms import HeldContainer, OpenedTerm, ShownAddresses, TermClaim

T = TypeVar("T")

READS = frozenset(
    {
        *("get_subnet", "list_subnets", "holders", "get_container", "list_containers", "owed", "quarantined"),
        *("demand", "utilization", "history", "usage_history"),
    }
)
"""The methods that change nothing."""


class AllocatorOperation(Struct, Generic[T], frozen=True):
    """One call of a method of the port."""

    verb: str
    """The name of the method."""
    subject: str
    """The name of what it is about: a node, a container's id, a subnet, a network or a cluster."""
    send: Callable[[Allocator], Awaitable[T]]
    """Makes the same call on another allocator. It may be used any number of times."""
    cluster: str = ""
    """Whose nodes, bounds, term or report it is about; "" for what clusters share."""

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.verb in READS


class AllocatorInterceptor(Allocator):
    """Passes every request on to the allocator behind it, unless a subclass overrides how."""

    def __init__(self, inner: Allocator) -> None:
        self._inner = inner

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Called for every request."""
        return await request.send(self._inner)

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        return await self._pass("add_subnet", spec.name, lambda to: to.add_subnet(spec))

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        return await self._pass(
            "grow_subnet", name, lambda to: to.grow_subnet(network, name, cidrs, gateways)
        )

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        return await self._pass(
            "shrink_subnet", name, lambda to: to.shrink_subnet(network, name, cidrs, at_once=at_once)
        )

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        return await self._pass("holders", name, lambda to: to.holders(network, name, cidr))

    async def remove_subnet(self, network: str, name: str) -> None:
        await self._pass("remove_subnet", name, lambda to: to.remove_subnet(network, name))

    async def get_subnet(self, network: str, name: str) -> Subnet:
        return await self._pass("get_subnet", name, lambda to: to.get_subnet(network, name))

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        return await self._pass("list_subnets", network, lambda to: to.list_subnets(network))

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        return await self._pass("put_container", wish.node, lambda to: to.put_container(wish), wish.cluster)

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        await self._pass(
            "delete_container",
            container_id,
            lambda to: to.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid),
            cluster,
        )

    async def move_container(self, wish: Wish) -> MoveResult:
        return await self._pass("move_container", wish.node, lambda to: to.move_container(wish), wish.cluster)

    async def reserve_container(self, reservation: ContainerReservation) -> AllocatedContainer:
        return await self._pass(
            "reserve_container",
            reservation.node,
            lambda to: to.reserve_container(reservation),
            reservation.cluster,
        )

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        return await self._pass(
            "quarantined",
            narrowed.get("node") or narrowed.get("cluster", ""),
            lambda to: to.quarantined(**narrowed),
            narrowed.get("cluster", ""),
        )

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        return await self._pass(
            "end_quarantine",
            container_id,
            lambda to: to.end_quarantine(
                container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
            ),
            cluster,
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        return await self._pass(
            "get_container", container_id, lambda to: to.get_container(container_id, cluster=cluster), cluster
        )

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        return await self._pass(
            "list_containers",
            narrowed.get("cluster") or narrowed.get("network", ""),
            lambda to: to.list_containers(**narrowed),
            narrowed.get("cluster", ""),
        )

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        return await self._pass("owed", name, lambda to: to.owed(network, name))

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        await self._pass(
            "set_bounds",
            name,
            lambda to: to.set_bounds(network, name, cluster=cluster, bounds=bounds),
            cluster,
        )

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        return await self._pass("demand", name, lambda to: to.demand(network, name))

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        return await self._pass("put_in_force", name, lambda to: to.put_in_force(network, name, decided))

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        return await self._pass("utilization", name, lambda to: to.utilization(network, name))

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        return await self._pass(
            "history", name, lambda to: to.history(network, name, since=since, until=until)
        )

    async def usage_history(
        self, network: str, name: str, *, since: float, until: float, step: UsageStep = "auto"
    ) -> tuple[SubnetUsage, ...]:
        return await self._pass(
            "usage_history",
            name,
            lambda to: to.usage_history(network, name, since=since, until=until, step=step),
        )

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        return await self._pass("open_term", claim.cluster, lambda to: to.open_term(claim), claim.cluster)

    async def close_term(self, claim: TermClaim) -> None:
        await self._pass("close_term", claim.cluster, lambda to: to.close_term(claim), claim.cluster)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        return await self._pass(
            "adopt_container", held.node, lambda to: to.adopt_container(held), held.cluster
        )

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        return await self._pass(
            "keep_for_pods", shown.node, lambda to: to.keep_for_pods(shown), shown.cluster
        )

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        await self._pass(
            "finish_report",
            cluster,
            lambda to: to.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery),
            cluster,
        )

    async def _pass(
        self, verb: str, subject: str, send: Callable[[Allocator], Awaitable[T]], cluster: str = ""
    ) -> T:
        return await self.intercept(AllocatorOperation(verb, subject, send, cluster))
