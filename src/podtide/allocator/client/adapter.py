"""The Allocator port over HTTP: each call a question, each answer decoded, each refusal the error it was."""

from random import Random
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from msgspec.structs import asdict, replace

from podtide.allocator.client.connection import (
    AllocatorAddress,
    AllocatorConnection,
    AllocatorHttpRequest,
    AllocatorTimeouts,
)
from podtide.allocator.containers import AllocatedContainer, ContainerPage, MoveResult, Wish
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.limits import MOST_SEEN
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
from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.allocator.wire import (
    BoundsBody,
    Ended,
    EndingBody,
    Forgotten,
    GrowthBody,
    HeldAddressBody,
    HeldBody,
    InForceBody,
    Kept,
    LastWishBody,
    MachineBody,
    NameBody,
    ReportBody,
    SeenBody,
    ShownBody,
    ShrinkingBody,
    StatedBody,
    SubnetBody,
    TermBody,
    WishBody,
)
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.foreign_json import UnreadableJson, decode_json
from podtide.runtime.randomness import system_randomness

T = TypeVar("T")


class HttpAllocator:
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Create the subnet, or return the one there if it is the same."""
        doing = f"add subnet {spec.network}/{spec.name}"
        body = SubnetBody(
            cidrs=spec.cidrs,
            gateways=spec.gateways,
            keep_back=spec.keep_back,
            keep_back_first=spec.keep_back_first,
        )
        path = _subnet(spec.network, spec.name, doing)
        return await self._ask(AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body), Subnet)

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """Add CIDRs to the subnet, each with its gateway."""
        doing = f"grow subnet {network}/{name}"
        path = f"{_subnet(network, name, doing)}/cidrs"
        body = GrowthBody(cidrs=cidrs, gateways=gateways)
        return await self._ask(AllocatorHttpRequest(doing=doing, method="POST", path=path, body=body), Subnet)

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """Drain CIDRs of the subnet, or remove them at once."""
        doing = f"shrink subnet {network}/{name}"
        path = f"{_subnet(network, name, doing)}/draining"
        body = ShrinkingBody(cidrs=cidrs, at_once=at_once)
        return await self._ask(AllocatorHttpRequest(doing=doing, method="POST", path=path, body=body), Subnet)

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """The containers that have addresses of a CIDR."""
        doing = f"ask who has addresses of {cidr} in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/holders"
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="GET", path=path, query={"cidr": cidr}), CidrHolders
        )

    async def remove_subnet(self, network: str, name: str) -> None:
        """Delete the subnet, if nothing in it is reserved."""
        doing = f"remove subnet {network}/{name}"
        await self._connection.ask(
            AllocatorHttpRequest(doing=doing, method="DELETE", path=_subnet(network, name, doing))
        )

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """The subnet's current state."""
        doing = f"get subnet {network}/{name}"
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="GET", path=_subnet(network, name, doing)), Subnet
        )

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """The subnets of a network, or of all networks."""
        doing = f"list the subnets of {network}" if network else "list subnets"
        path = f"/networks/{_part(network, doing)}/subnets" if network else "/subnets"
        return await self._ask(AllocatorHttpRequest(doing=doing, method="GET", path=path), tuple[Subnet, ...])

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """Release and grant addresses as the wish says; idempotent."""
        doing = f"put container {wish.id} of {wish.cluster}"
        path = _container(wish.cluster, wish.id, doing)
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=_wish_body(wish)),
            AllocatedContainer,
        )

    async def move_container(self, wish: Wish) -> MoveResult:
        """Like `put_container`, after moving what the same machine had as an earlier Node."""
        doing = f"move addresses to container {wish.id} of {wish.cluster}"
        path = f"{_container(wish.cluster, wish.id, doing)}/move"
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="POST", path=path, body=_wish_body(wish)), MoveResult
        )

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """One page of what is in quarantine, by removed container."""
        narrowed = {"cluster": cluster, "node": node, "due": "true" if due else "", "more": more}
        query = {key: value for key, value in narrowed.items() if value} | {"limit": str(limit)}
        question = AllocatorHttpRequest(
            doing="list quarantines", method="GET", path="/quarantined", query=query
        )
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
        """Release these addresses of a removed container from quarantine."""
        doing = f"end the quarantine of container {container_id} of {cluster}"
        path = f"{_container(cluster, container_id, doing)}/end-quarantine"
        body = EndingBody(addresses=addresses, reason=reason, cluster_uid=cluster_uid)
        return (
            await self._ask(AllocatorHttpRequest(doing=doing, method="POST", path=path, body=body), Ended)
        ).ended

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """Delete a removed Node's container; its addresses go into quarantine."""
        doing = f"delete container {container_id} of {cluster}"
        path = _container(cluster, container_id, doing)
        query = {"cluster_uid": cluster_uid} if cluster_uid else {}
        await self._connection.ask(AllocatorHttpRequest(doing=doing, method="DELETE", path=path, query=query))

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """The container and its addresses."""
        doing = f"get container {container_id} of {cluster}"
        path = _container(cluster, container_id, doing)
        return await self._ask(AllocatorHttpRequest(doing=doing, method="GET", path=path), AllocatedContainer)

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
        """One page of containers."""
        narrowed = {"cluster": cluster, "node": node, "network": network, "subnet": subnet, "more": more}
        query = {key: value for key, value in narrowed.items() if value} | {"limit": str(limit)}
        question = AllocatorHttpRequest(
            doing="list containers", method="GET", path="/containers", query=query
        )
        return await self._ask(question, ContainerPage)

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """The containers that are owed addresses, in the order they will be served."""
        doing = f"ask who is owed in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/owed"
        return await self._ask(AllocatorHttpRequest(doing=doing, method="GET", path=path), tuple[Debt, ...])

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Store the bounds that a cluster sets for the subnet's batch."""
        doing = f"set the bounds of {cluster} in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/bounds/{_part(cluster, doing)}"
        body = BoundsBody(**asdict(bounds))
        await self._connection.ask(AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body))

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """The counts that the subnet's batch is decided from."""
        doing = f"ask for the demand in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/demand"
        return await self._ask(AllocatorHttpRequest(doing=doing, method="GET", path=path), SubnetDemandReport)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """Set the batch in force, unless it changed since it was read (compare-and-set)."""
        doing = f"put a batch in force in {network}/{name}"
        path = f"{_subnet(network, name, doing)}/in-force"
        fields = asdict(decided)
        del fields["age_seconds"]  # the allocator's own to say
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=InForceBody(**fields)), Subnet
        )

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """How full the subnet is now."""
        doing = f"ask how full {network}/{name} is"
        path = f"{_subnet(network, name, doing)}/utilization"
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="GET", path=path), tuple[Utilization, ...]
        )

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """Past utilization, oldest first."""
        doing = f"ask how full {network}/{name} was"
        path = f"{_subnet(network, name, doing)}/history"
        query = {"since": repr(since), "until": repr(until)}
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="GET", path=path, query=query), tuple[Utilization, ...]
        )

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """Open or renew the term of a cluster's controller."""
        doing = f"open a term for {claim.cluster}"
        path = f"{_cluster(claim.cluster, doing)}/term"
        answers = []
        for first in range(0, max(1, len(claim.seen)), MOST_SEEN):
            seen = tuple(SeenBody(**asdict(each)) for each in claim.seen[first : first + MOST_SEEN])
            body = TermBody(cluster_uid=claim.cluster_uid, holder=claim.holder, seen=seen)
            question = AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body)
            answers.append(await self._ask(question, OpenedTerm))
        # Whether the store recovers is known after the last: each may have been the one to show that it went back.
        return replace(answers[-1], reached=tuple(each for answer in answers for each in answer.reached))

    async def close_term(self, claim: TermClaim) -> None:
        """Close the term, so that the next controller need not wait."""
        doing = f"close the term of {claim.cluster}"
        whose = f"{_part(claim.cluster_uid, doing)}/{_part(claim.holder, doing)}"
        path = f"{_cluster(claim.cluster, doing)}/terms/{whose}"
        await self._connection.ask(AllocatorHttpRequest(doing=doing, method="DELETE", path=path))

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """Record what a node holds, while the store recovers."""
        doing = f"report container {held.id} of {held.cluster}"
        body = HeldBody(
            network=held.network,
            subnet=held.subnet,
            cluster_uid=held.cluster_uid,
            node=held.node,
            primary=held.primary,
            version=held.version,
            request_uid=held.request_uid,
            generation=held.generation,
            recovery=held.recovery,
            addresses=tuple(HeldAddressBody(name=each.name, ip=each.ip) for each in held.addresses),
            gave_up=held.gave_up,
        )
        path = f"{_cluster(held.cluster, doing)}/report/{_part(held.id, doing)}"
        return await self._ask(
            AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body), tuple[str, ...]
        )

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """Put addresses that living pods show into quarantine, while the store recovers."""
        doing = f"report what pods of node {shown.node} of {shown.cluster} show"
        body = ShownBody(
            network=shown.network,
            subnet=shown.subnet,
            cluster_uid=shown.cluster_uid,
            recovery=shown.recovery,
            addresses=shown.addresses,
        )
        path = f"{_cluster(shown.cluster, doing)}/report/pods/{_part(shown.node, doing)}"
        return (
            await self._ask(AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body), Kept)
        ).addresses

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """End the cluster's report of what its nodes hold."""
        doing = f"finish the report of {cluster}"
        path, body = (
            f"{_cluster(cluster, doing)}/report",
            ReportBody(cluster_uid=cluster_uid, recovery=recovery),
        )
        await self._connection.ask(AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=body))

    async def list_clusters(self) -> ClusterRegistry:
        """All clusters, and whether the store recovers."""
        return await self._ask(
            AllocatorHttpRequest(doing="list clusters", method="GET", path="/clusters"), ClusterRegistry
        )

    async def move_cluster(self, name: str, *, uid: str) -> None:
        """Bind the cluster's name to another uid."""
        doing = f"move the cluster name {name}"
        path = f"{_cluster(name, doing)}/uid"
        await self._connection.ask(
            AllocatorHttpRequest(doing=doing, method="PUT", path=path, body=NameBody(uid=uid))
        )

    async def forget_cluster(self, name: str, *, uid: str | None = None, reason: str = "") -> int:
        """Delete a cluster that is gone for good, with its containers."""
        doing = f"forget cluster {name}"
        query = {} if uid is None else {"uid": uid} if uid else {"without_uid": "true"}
        query |= {"reason": reason} if reason else {}
        question = AllocatorHttpRequest(doing=doing, method="DELETE", path=_cluster(name, doing), query=query)
        return (await self._ask(question, Forgotten)).containers

    async def end_recovery(self) -> None:
        """End the recovery without the reports that are missing."""
        await self._connection.ask(
            AllocatorHttpRequest(doing="end the recovery", method="DELETE", path="/recovery")
        )

    async def _ask(self, question: AllocatorHttpRequest, kind: type[T]) -> T:
        answer = await self._connection.ask(question)
        try:
            return decode_json(answer, kind)
        except UnreadableJson as error:
            raise AllocatorUnavailable(
                f"cannot {question.doing}: the answer is none of an allocator ({error}): see that the URL is one's"
            ) from error


def _wish_body(wish: Wish) -> WishBody:
    return WishBody(
        network=wish.network,
        subnet=wish.subnet,
        node=wish.node,
        request_uid=wish.request_uid,
        generation=wish.generation,
        count=wish.count,
        release=wish.release,
        waiting_pods=wish.waiting_pods,
        stated=None if wish.stated is None else StatedBody(**asdict(wish.stated)),
        statement_number=wish.statement_number,
        machine=MachineBody(**asdict(wish.machine)),
        cluster_uid=wish.cluster_uid,
        seen=wish.seen,
        instead_of=None if wish.instead_of is None else LastWishBody(**asdict(wish.instead_of)),
    )


def _subnet(network: str, name: str, doing: str) -> str:
    return f"/networks/{_part(network, doing)}/subnets/{_part(name, doing)}"


def _cluster(name: str, doing: str) -> str:
    return f"/clusters/{_part(name, doing)}"


def _container(cluster: str, container_id: str, doing: str) -> str:
    return f"/clusters/{_part(cluster, doing)}/containers/{_part(container_id, doing)}"


def _part(name: str, doing: str) -> str:
    """A name as part of a path. One that would change the path is refused here: the service could not detect it."""
    if name in {"", ".", ".."} or "/" in name:
        raise InvalidInput(f"cannot {doing}: {name!r} is not a valid name in a path")
    return quote(name, safe="")
