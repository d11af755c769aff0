"""The Allocator port of one program, under the conditions that there are."""

from podtide.allocator.port import (
    AllocatedContainer,
    Allocator,
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
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import ALLOCATOR, Request


class FaultyAllocator:
    """`line` ends with the program; over `wire` goes what has left it already."""

    def __init__(self, line: Allocator, wire: Allocator, program: str, conditions: Conditions) -> None:
        self._line = line
        self._wire = wire
        self._program = program
        self._conditions = conditions

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """See `Allocator.add_subnet`."""
        return await self._conditions.carry(
            self._request("add_subnet", spec.name),
            lambda: self._line.add_subnet(spec),
            lambda: self._wire.add_subnet(spec),
        )

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """See `Allocator.grow_subnet`."""
        return await self._conditions.carry(
            self._request("grow_subnet", name),
            lambda: self._line.grow_subnet(network, name, cidrs, gateways),
            lambda: self._wire.grow_subnet(network, name, cidrs, gateways),
        )

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """See `Allocator.shrink_subnet`."""
        return await self._conditions.carry(
            self._request("shrink_subnet", name),
            lambda: self._line.shrink_subnet(network, name, cidrs, at_once=at_once),
            lambda: self._wire.shrink_subnet(network, name, cidrs, at_once=at_once),
        )

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """See `Allocator.holders`."""
        return await self._conditions.carry(
            self._request("holders", name),
            lambda: self._line.holders(network, name, cidr),
            lambda: self._wire.holders(network, name, cidr),
        )

    async def remove_subnet(self, network: str, name: str) -> None:
        """See `Allocator.remove_subnet`."""
        await self._conditions.carry(
            self._request("remove_subnet", name),
            lambda: self._line.remove_subnet(network, name),
            lambda: self._wire.remove_subnet(network, name),
        )

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """See `Allocator.get_subnet`."""
        return await self._conditions.carry(
            self._request("get_subnet", name),
            lambda: self._line.get_subnet(network, name),
            lambda: self._wire.get_subnet(network, name),
        )

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """See `Allocator.list_subnets`."""
        return await self._conditions.carry(
            self._request("list_subnets", network),
            lambda: self._line.list_subnets(network),
            lambda: self._wire.list_subnets(network),
        )

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """See `Allocator.put_container`."""
        return await self._conditions.carry(
            self._request("put_container", wish.node),
            lambda: self._line.put_container(wish),
            lambda: self._wire.put_container(wish),
        )

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """See `Allocator.delete_container`."""
        await self._conditions.carry(
            self._request("delete_container", container_id),
            lambda: self._line.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid),
            lambda: self._wire.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid),
        )

    async def move_container(self, wish: Wish) -> MoveResult:
        """See `Allocator.move_container`."""
        return await self._conditions.carry(
            self._request("move_container", wish.node),
            lambda: self._line.move_container(wish),
            lambda: self._wire.move_container(wish),
        )

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """See `Allocator.quarantined`."""

        async def read() -> QuarantinePage:
            return await self._line.quarantined(cluster=cluster, node=node, due=due, limit=limit, more=more)

        return await self._conditions.carry(self._request("quarantined", node or cluster), read, read)

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
        return await self._conditions.carry(
            self._request("end_quarantine", container_id),
            lambda: self._line.end_quarantine(
                container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
            ),
            lambda: self._wire.end_quarantine(
                container_id, addresses, cluster=cluster, cluster_uid=cluster_uid, reason=reason
            ),
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """See `Allocator.get_container`."""
        return await self._conditions.carry(
            self._request("get_container", container_id),
            lambda: self._line.get_container(container_id, cluster=cluster),
            lambda: self._wire.get_container(container_id, cluster=cluster),
        )

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

        async def read() -> ContainerPage:
            return await self._line.list_containers(
                cluster=cluster, node=node, network=network, subnet=subnet, limit=limit, more=more
            )

        return await self._conditions.carry(self._request("list_containers", cluster or network), read, read)

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """See `Allocator.owed`."""
        return await self._conditions.carry(
            self._request("owed", name),
            lambda: self._line.owed(network, name),
            lambda: self._wire.owed(network, name),
        )

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """See `Allocator.set_bounds`."""
        await self._conditions.carry(
            self._request("set_bounds", name),
            lambda: self._line.set_bounds(network, name, cluster=cluster, bounds=bounds),
            lambda: self._wire.set_bounds(network, name, cluster=cluster, bounds=bounds),
        )

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """See `Allocator.demand`."""
        return await self._conditions.carry(
            self._request("demand", name),
            lambda: self._line.demand(network, name),
            lambda: self._wire.demand(network, name),
        )

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """See `Allocator.put_in_force`."""
        return await self._conditions.carry(
            self._request("put_in_force", name),
            lambda: self._line.put_in_force(network, name, decided),
            lambda: self._wire.put_in_force(network, name, decided),
        )

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """See `Allocator.utilization`."""
        return await self._conditions.carry(
            self._request("utilization", name),
            lambda: self._line.utilization(network, name),
            lambda: self._wire.utilization(network, name),
        )

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """See `Allocator.history`."""
        return await self._conditions.carry(
            self._request("history", name),
            lambda: self._line.history(network, name, since=since, until=until),
            lambda: self._wire.history(network, name, since=since, until=until),
        )

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """See `Allocator.open_term`."""
        return await self._conditions.carry(
            self._request("open_term", claim.cluster),
            lambda: self._line.open_term(claim),
            lambda: self._wire.open_term(claim),
        )

    async def close_term(self, claim: TermClaim) -> None:
        """See `Allocator.close_term`."""
        await self._conditions.carry(
            self._request("close_term", claim.cluster),
            lambda: self._line.close_term(claim),
            lambda: self._wire.close_term(claim),
        )

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """See `Allocator.adopt_container`."""
        return await self._conditions.carry(
            self._request("adopt_container", held.node),
            lambda: self._line.adopt_container(held),
            lambda: self._wire.adopt_container(held),
        )

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """See `Allocator.keep_for_pods`."""
        return await self._conditions.carry(
            self._request("keep_for_pods", shown.node),
            lambda: self._line.keep_for_pods(shown),
            lambda: self._wire.keep_for_pods(shown),
        )

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """See `Allocator.finish_report`."""
        await self._conditions.carry(
            self._request("finish_report", cluster),
            lambda: self._line.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery),
            lambda: self._wire.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery),
        )

    def _request(self, verb: str, subject: str) -> Request:
        return Request(program=self._program, port=ALLOCATOR, verb=verb, subject=subject)
