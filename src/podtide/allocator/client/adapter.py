"""The Allocator port over HTTP: each call a question, each answer decoded, each refusal the error it was."""

from random import Random
from typing import Self, TypeVar, Unpack
from urllib.parse import quote

from msgspec.structs import replace

from podtide.allocator.client.connection import (
    AllocatorAddress,
    AllocatorConnection,
    AllocatorHttpRequest,
    AllocatorTimeouts,
)
from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerFilter,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.limits import MOST_SEEN
from podtide.allocator.port import AdministeredAllocator
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
from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.allocator.wire import Ended, Forgotten, Kept, body_of
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.foreign_json import UnreadableJson, decode_json
from podtide.runtime.randomness import system_randomness

T = TypeVar("T")


class HttpAllocator(AdministeredAllocator):
    """An allocator elsewhere. Close it, or use it with `async with`."""

    def __init__(
        self,
        server: AllocatorAddress,
        *,
        timeouts: AllocatorTimeouts | None = None,
        clock: Clock | None = None,
        randomness: Random | None = None,
    ) -> None:
        self._connection = AllocatorConnection(
            server, timeouts or AllocatorTimeouts(), clock or SystemClock(), randomness or system_randomness()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        doing = f"add subnet {spec.network}/{spec.name}"
        body = body_of(spec, "network", "name")
        path = _subnet(spec.network, spec.name, doing)
        return await self._ask(AllocatorHttpRequest("PUT", path, doing, body=body), Subnet)

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        doing = f"grow subnet {network}/{name}"
        path = f"{_subnet(network, name, doing)}/cidrs"
        body = {"cidrs": cidrs, "gateways": gateways}
        return await self._ask(AllocatorHttpRequest("POST", path, doing, body=body), Subnet)

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        doing = f"shrink subnet {network}/{name}"
        path = f"{_subnet(network, name, doing)}/draining"
        body = {"cidrs": cidrs, "at_once": at_once}
        return await self._ask(AllocatorHttpRequest("POST", path, doing, body=body), Subnet)

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        doing = f"ask who has addresses of {cidr} in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/holders"
        return await self._ask(AllocatorHttpRequest("GET", path, doing, query={"cidr": cidr}), CidrHolders)

    async def remove_subnet(self, network: str, name: str) -> None:
        doing = f"remove subnet {network}/{name}"
        await self._connection.ask(AllocatorHttpRequest("DELETE", _subnet(network, name, doing), doing))

    async def get_subnet(self, network: str, name: str) -> Subnet:
        doing = f"get subnet {network}/{name}"
        return await self._ask(AllocatorHttpRequest("GET", _subnet(network, name, doing), doing), Subnet)

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        doing = f"list the subnets of {network}" if network else "list subnets"
        path = f"/networks/{_part(network, doing)}/subnets" if network else "/subnets"
        return await self._ask(AllocatorHttpRequest("GET", path, doing), tuple[Subnet, ...])

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        doing = f"put container {wish.id} of {wish.cluster}"
        path = _container(wish.cluster, wish.id, doing)
        return await self._ask(
            AllocatorHttpRequest("PUT", path, doing, body=body_of(wish, "id", "cluster")),
            AllocatedContainer,
        )

    async def move_container(self, wish: Wish) -> MoveResult:
        doing = f"move addresses to container {wish.id} of {wish.cluster}"
        path = f"{_container(wish.cluster, wish.id, doing)}/move"
        return await self._ask(
            AllocatorHttpRequest("POST", path, doing, body=body_of(wish, "id", "cluster")), MoveResult
        )

    async def reserve_container(self, reservation: ContainerReservation) -> AllocatedContainer:
        doing = f"reserve what node {reservation.node} of {reservation.cluster} has"
        path = f"{_container(reservation.cluster, reservation.id, doing)}/reservation"
        body = body_of(reservation, "id", "cluster")
        return await self._ask(AllocatorHttpRequest("PUT", path, doing, body=body), AllocatedContainer)

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        question = AllocatorHttpRequest("GET", "/quarantined", "list quarantines", query=_query(narrowed))
        return await self._ask(question, QuarantinePage)

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        doing = f"end the quarantine of container {container_id} of {cluster}"
        path = f"{_container(cluster, container_id, doing)}/end-quarantine"
        body = {"addresses": addresses, "reason": reason, "cluster_uid": cluster_uid}
        return (await self._ask(AllocatorHttpRequest("POST", path, doing, body=body), Ended)).ended

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        doing = f"delete container {container_id} of {cluster}"
        path = _container(cluster, container_id, doing)
        query = {"cluster_uid": cluster_uid} if cluster_uid else {}
        await self._connection.ask(AllocatorHttpRequest("DELETE", path, doing, query=query))

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        doing = f"get container {container_id} of {cluster}"
        path = _container(cluster, container_id, doing)
        return await self._ask(AllocatorHttpRequest("GET", path, doing), AllocatedContainer)

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        question = AllocatorHttpRequest("GET", "/containers", "list containers", query=_query(narrowed))
        return await self._ask(question, ContainerPage)

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        doing = f"ask who is owed in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/owed"
        return await self._ask(AllocatorHttpRequest("GET", path, doing), tuple[Debt, ...])

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        doing = f"set the bounds of {cluster} in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/bounds/{_part(cluster, doing)}"
        body = body_of(bounds)
        await self._connection.ask(AllocatorHttpRequest("PUT", path, doing, body=body))

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        doing = f"ask for the demand in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/demand"
        return await self._ask(AllocatorHttpRequest("GET", path, doing), SubnetDemandReport)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        doing = f"put a batch in force in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/in-force"
        body = body_of(decided, "age_seconds")  # that is the allocator's own to say
        return await self._ask(AllocatorHttpRequest("PUT", path, doing, body=body), Subnet)

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        doing = f"ask how full {network}/{name} is"
        path = f"{_subnet(network, name, doing)}/utilization"
        return await self._ask(AllocatorHttpRequest("GET", path, doing), tuple[Utilization, ...])

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        doing = f"ask how full {network}/{name} was"
        path = f"{_subnet(network, name, doing)}/history"
        query = {"since": repr(since), "until": repr(until)}
        return await self._ask(AllocatorHttpRequest("GET", path, doing, query=query), tuple[Utilization, ...])

    async def usage_history(
        self, network: str, name: str, *, since: float, until: float, step: UsageStep = "auto"
    ) -> tuple[SubnetUsage, ...]:
        doing = f"ask how {network}/{name} was used"
        path = f"{_subnet(network, name, doing)}/usage"
        query = {"since": repr(since), "until": repr(until), "step": step}
        return await self._ask(AllocatorHttpRequest("GET", path, doing, query=query), tuple[SubnetUsage, ...])

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        doing = f"open a term for {claim.cluster}"
        path = f"{_cluster(claim.cluster, doing)}/term"
        answers = []
        for first in range(0, max(1, len(claim.seen)), MOST_SEEN):
            part = replace(claim, seen=claim.seen[first : first + MOST_SEEN])
            body = body_of(part, "cluster")
            question = AllocatorHttpRequest("PUT", path, doing, body=body)
            answers.append(await self._ask(question, OpenedTerm))
        # Whether the store recovers is known after the last: each may have been the one to show that it went back.
        return replace(answers[-1], reached=tuple(each for answer in answers for each in answer.reached))

    async def close_term(self, claim: TermClaim) -> None:
        doing = f"close the term of {claim.cluster}"
        whose = f"{_part(claim.cluster_uid, doing)}/{_part(claim.holder, doing)}"
        path = f"{_cluster(claim.cluster, doing)}/terms/{whose}"
        await self._connection.ask(AllocatorHttpRequest("DELETE", path, doing))

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        doing = f"report container {held.id} of {held.cluster}"
        body = body_of(held, "id", "cluster")
        path = f"{_cluster(held.cluster, doing)}/report/{_part(held.id, doing)}"
        return await self._ask(AllocatorHttpRequest("PUT", path, doing, body=body), tuple[str, ...])

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        doing = f"report what pods of node {shown.node} of {shown.cluster} show"
        body = body_of(shown, "cluster", "node")
        path = f"{_cluster(shown.cluster, doing)}/report/pods/{_part(shown.node, doing)}"
        return (await self._ask(AllocatorHttpRequest("PUT", path, doing, body=body), Kept)).addresses

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        doing = f"finish the report of {cluster}"
        path = f"{_cluster(cluster, doing)}/report"
        body = {"cluster_uid": cluster_uid, "recovery": recovery}
        await self._connection.ask(AllocatorHttpRequest("PUT", path, doing, body=body))

    async def list_clusters(self) -> ClusterRegistry:
        return await self._ask(AllocatorHttpRequest("GET", "/clusters", "list clusters"), ClusterRegistry)

    async def move_cluster(self, name: str, *, uid: str) -> None:
        doing = f"move the cluster name {name}"
        path = f"{_cluster(name, doing)}/uid"
        await self._connection.ask(AllocatorHttpRequest("PUT", path, doing, body={"uid": uid}))

    async def forget_cluster(self, name: str, *, uid: str | None = None, reason: str = "") -> int:
        doing = f"forget cluster {name}"
        query = {} if uid is None else {"uid": uid} if uid else {"without_uid": "true"}
        query |= {"reason": reason} if reason else {}
        question = AllocatorHttpRequest("DELETE", _cluster(name, doing), doing, query=query)
        return (await self._ask(question, Forgotten)).containers

    async def end_recovery(self) -> None:
        await self._connection.ask(AllocatorHttpRequest("DELETE", "/recovery", "end the recovery"))

    async def _ask(self, question: AllocatorHttpRequest, kind: type[T]) -> T:
        answer = await self._connection.ask(question)
        try:
            return decode_json(answer, kind)
        except UnreadableJson as error:
            raise AllocatorUnavailable(
                f"cannot {question.doing}: the answer is none of an allocator ({error}): see that the URL is one's"
            ) from error


def _subnet(network: str, name: str, doing: str) -> str:
    return f"/networks/{_part(network, doing)}/subnets/{_part(name, doing)}"


def _cluster(name: str, doing: str) -> str:
    return f"/clusters/{_part(name, doing)}"


def _container(cluster: str, container_id: str, doing: str) -> str:
    return f"/clusters/{_part(cluster, doing)}/containers/{_part(container_id, doing)}"


def _query(narrowed: ContainerFilter | QuarantineFilter) -> dict[str, str]:
    return {key: "true" if value is True else str(value) for key, value in narrowed.items() if value != ""}


def _part(name: str, doing: str) -> str:
    """A name as part of a path. One that would change the path is refused here: the service could not detect it."""
    if name in {"", ".", ".."} or "/" in name:
        raise InvalidInput(f"cannot {doing}: {name!r} is not a valid name in a path")
    return quote(name, safe="")
