"""The allocator as one cluster's credential sees it.

A cluster may read the subnets it shares with others, and how full they are; it may not change them. Of containers, and
of who is owed, it sees its own alone. The administration sees and may do everything: it has the allocator itself.

Which batch is in force in a shared subnet is decided by every cluster's controller from the same counts, so each may read
them, which name no node, and put in force what it decided. The bounds that they decide within are each cluster's own to set.
"""

from typing import NoReturn

from msgspec.structs import replace

from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
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
    """The allocator port, limited to one cluster."""

    def __init__(self, allocator: Allocator, cluster: str) -> None:
        self._allocator = allocator
        self._cluster = cluster

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Raise NotAllowed: a cluster may not change subnets."""
        self._refuse_change("add", spec.network, spec.name)

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """Raise NotAllowed: a cluster may not change subnets."""
        del cidrs, gateways
        self._refuse_change("grow", network, name)

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """Raise NotAllowed: a cluster may not change subnets."""
        del cidrs, at_once
        self._refuse_change("shrink", network, name)

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """The containers that have addresses of a CIDR (its own only)."""
        held = await self._allocator.holders(network, name, cidr)
        return replace(held, holders=tuple(each for each in held.holders if each.cluster == self._cluster))

    async def remove_subnet(self, network: str, name: str) -> None:
        """Raise NotAllowed: a cluster may not change subnets."""
        self._refuse_change("remove", network, name)

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """The subnet's current state."""
        return await self._allocator.get_subnet(network, name)

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """The subnets of a network, or of all networks."""
        return await self._allocator.list_subnets(network)

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """Release and grant addresses as the wish says; idempotent (its own nodes only)."""
        self._check(wish.cluster)
        return await self._allocator.put_container(wish)

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """Delete a removed Node's container; its addresses go into quarantine (its own nodes only)."""
        self._check(cluster)
        await self._allocator.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid)

    async def move_container(self, wish: Wish) -> MoveResult:
        """Like `put_container`, after moving what the same machine had as an earlier Node (its own nodes only)."""
        self._check(wish.cluster)
        return await self._allocator.move_container(wish)

    async def reserve_container(self, reservation: ContainerReservation) -> AllocatedContainer:
        """Have a container hold what another program gave its node (its own nodes only)."""
        self._check(reservation.cluster)
        return await self._allocator.reserve_container(reservation)

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """One page of what is in quarantine, by removed container (its own only, also when it names no cluster)."""
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
        """Release these addresses of a removed container from quarantine (its own nodes only)."""
        self._check(cluster)
        return await self._allocator.end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """The container and its addresses (its own nodes only)."""
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
        """One page of containers (its own only, also when it names no cluster)."""
        self._check(cluster or self._cluster)
        return await self._allocator.list_containers(
            cluster=self._cluster, node=node, network=network, subnet=subnet, limit=limit, more=more
        )

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """The containers that are owed addresses, in the order they will be served (its own only)."""
        debts = await self._allocator.owed(network, name)
        return tuple(debt for debt in debts if debt.cluster == self._cluster)

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Store the bounds that a cluster sets for the subnet's batch (its own only)."""
        self._check(cluster, "bounds")
        await self._allocator.set_bounds(network, name, cluster=cluster, bounds=bounds)

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """The counts that the subnet's batch is decided from."""
        return await self._allocator.demand(network, name)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """Set the batch in force, unless it changed since it was read (compare-and-set)."""
        return await self._allocator.put_in_force(network, name, decided)

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """How full the subnet is now."""
        return await self._allocator.utilization(network, name)

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """Past utilization, oldest first."""
        return await self._allocator.history(network, name, since=since, until=until)

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """Open or renew the term of a cluster's controller (its own only)."""
        self._check(claim.cluster, "terms")
        return await self._allocator.open_term(claim)

    async def close_term(self, claim: TermClaim) -> None:
        """Close the term, so that the next controller need not wait (its own only)."""
        self._check(claim.cluster, "terms")
        await self._allocator.close_term(claim)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """Record what a node holds, while the store recovers (its own nodes only)."""
        self._check(held.cluster)
        return await self._allocator.adopt_container(held)

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """Put addresses that living pods show into quarantine, while the store recovers (its own pods only)."""
        self._check(shown.cluster, "reports")
        return await self._allocator.keep_for_pods(shown)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """End the cluster's report of what its nodes hold (its own only)."""
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
