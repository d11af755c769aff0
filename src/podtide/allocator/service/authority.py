"""The allocator as one cluster's credential sees it.

A cluster may read the subnets it shares with others, and how full they are; it may not change them. Of containers, and
of who is owed, it sees its own alone. The administration sees and may do everything: it has the allocator itself.

Which batch is in force in a shared subnet is decided by every cluster's controller from the same counts, so each may read
them, which name no node, and put in force what it decided. The bounds that they decide within are each cluster's own to set.
"""

from typing import NoReturn

from msgspec.structs import replace

from podtide.allocator.containers import AllocatedContainer, ContainerPage, MoveResult, Wish
from podtide.allocator.errors import NotAllowed
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import QuarantinePage
from podtide.allocator.subnets import (
    Bounds,
    CidrHolders,
    Debt,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    Utilization,
)
from podtide.allocator.terms import HeldContainer, OpenedTerm, ShownAddresses, TermClaim


class CallerAllocator:
    """The allocator port for one cluster."""

    def __init__(self, allocator: Allocator, cluster: str) -> None:
        self._allocator = allocator
        self._cluster = cluster

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Not for a cluster."""
        self._refuse_change("add", spec.network, spec.name)

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """Not for a cluster."""
        del cidrs, gateways
        self._refuse_change("grow", network, name)

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """Not for a cluster."""
        del cidrs, at_once
        self._refuse_change("shrink", network, name)

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """See `Allocator`; of containers, its own alone."""
        held = await self._allocator.holders(network, name, cidr)
        return replace(held, holders=tuple(each for each in held.holders if each.cluster == self._cluster))

    async def remove_subnet(self, network: str, name: str) -> None:
        """Not for a cluster."""
        self._refuse_change("remove", network, name)

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """See `Allocator`."""
        return await self._allocator.get_subnet(network, name)

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """See `Allocator`."""
        return await self._allocator.list_subnets(network)

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """See `Allocator`; for its own nodes."""
        self._check(wish.cluster)
        return await self._allocator.put_container(wish)

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """See `Allocator`; for its own nodes."""
        self._check(cluster)
        await self._allocator.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid)

    async def move_container(self, wish: Wish) -> MoveResult:
        """See `Allocator`; for its own nodes."""
        self._check(wish.cluster)
        return await self._allocator.move_container(wish)

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """See `Allocator`; its own alone, whether it says so or not."""
        self._check(cluster or self._cluster)
        return await self._allocator.quarantined(
            cluster=self._cluster, node=node, due=due, limit=limit, more=more
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
        """See `Allocator`; for its own nodes."""
        self._check(cluster)
        return await self._allocator.end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """See `Allocator`; for its own nodes."""
        self._check(cluster)
        return await self._allocator.get_container(container_id, cluster=cluster)

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
        """See `Allocator`; its own alone, whether it says so or not."""
        self._check(cluster or self._cluster)
        return await self._allocator.list_containers(
            cluster=self._cluster, node=node, network=network, subnet=subnet, limit=limit, more=more
        )

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """See `Allocator`; its own alone, in the order among them."""
        debts = await self._allocator.owed(network, name)
        return tuple(debt for debt in debts if debt.cluster == self._cluster)

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """See `Allocator`; its own."""
        self._check(cluster, "bounds")
        await self._allocator.set_bounds(network, name, cluster=cluster, bounds=bounds)

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """See `Allocator`."""
        return await self._allocator.demand(network, name)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """See `Allocator`."""
        return await self._allocator.put_in_force(network, name, decided)

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """See `Allocator`."""
        return await self._allocator.utilization(network, name)

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """See `Allocator`."""
        return await self._allocator.history(network, name, since=since, until=until)

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """See `Allocator`; for itself."""
        self._check(claim.cluster, "terms")
        return await self._allocator.open_term(claim)

    async def close_term(self, claim: TermClaim) -> None:
        """See `Allocator`; its own."""
        self._check(claim.cluster, "terms")
        await self._allocator.close_term(claim)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """See `Allocator`; for its own nodes."""
        self._check(held.cluster)
        return await self._allocator.adopt_container(held)

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """See `Allocator`; for its own pods."""
        self._check(shown.cluster, "reports")
        return await self._allocator.keep_for_pods(shown)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """See `Allocator`; its own."""
        self._check(cluster, "reports")
        await self._allocator.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery)

    def _check(self, cluster: str, what: str = "containers") -> None:
        if cluster != self._cluster:
            raise NotAllowed(
                f"the token is for cluster {self._cluster}, and not for the {what} of {cluster}: "
                "use that cluster's token"
            )

    def _refuse_change(self, verb: str, network: str, name: str) -> NoReturn:
        raise NotAllowed(
            f"the token is for cluster {self._cluster}, and may not {verb} subnet {network}/{name}: "
            "use one for administration"
        )
