"""The Allocator port: what the request controller, and people, may ask of the owner of the subnets.

The docstrings here are the contract. One suite proves it for the allocator in this process on SQLite, on PostgreSQL,
and for the HTTP client against the service. Every call may be made again: an answer that was lost costs nothing.

An address of a subnet is in exactly one state:

    reserved     a container's primary or secondary, or in quarantine: counted in R
    free         nobody's; among these, some cool down and are given last
    kept back    a CIDR's network and last address, its gateway, and what the subnet keeps for others: not counted in Q
    drained      of a CIDR that drains, and nobody's: not counted in Q, and given to nobody

So Q = R + free, always, in every transaction.
"""

from typing import Protocol

from podtide.allocator.containers import (
    AllocatedContainer,
    CidrInUse,
    ContainerPage,
    GrantedAddress,
    LastWish,
    MoveResult,
    Wish,
)
from podtide.allocator.errors import (
    AllocatorError,
    AllocatorUnavailable,
    AnotherCluster,
    AnotherTerm,
    InForceConflict,
    NoSuchContainer,
    NoSuchSubnet,
    NotAllowed,
    StaleWish,
    StoreRecovering,
    SubnetExists,
    SubnetFull,
    SubnetInUse,
)
from podtide.allocator.quarantine import (
    Quarantined,
    QuarantinePage,
)
from podtide.allocator.subnets import (
    Bounds,
    CidrHolder,
    CidrHolders,
    ClusterBounds,
    ContainerCount,
    Debt,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    Utilization,
)
from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim

__all__ = [
    "AdministeredAllocator",
    "AllocatedContainer",
    "Allocator",
    "AllocatorError",
    "AllocatorUnavailable",
    "AnotherCluster",
    "AnotherTerm",
    "Bounds",
    "CidrHolder",
    "CidrHolders",
    "CidrInUse",
    "ClusterBounds",
    "ContainerCount",
    "ContainerPage",
    "Debt",
    "GrantedAddress",
    "InForceConflict",
    "LastWish",
    "MoveResult",
    "NoSuchContainer",
    "NoSuchSubnet",
    "NotAllowed",
    "QuarantinePage",
    "Quarantined",
    "StaleWish",
    "StoreRecovering",
    "Subnet",
    "SubnetDemandReport",
    "SubnetExists",
    "SubnetFull",
    "SubnetInForce",
    "SubnetInUse",
    "SubnetSpec",
    "Utilization",
    "Wish",
]


class Allocator(Protocol):
    """The owner of the subnets, as one caller sees it."""

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Make the subnet; its network appears with its first subnet. The same again answers the one there.

        SubnetExists when the name is taken by another definition, or the addresses overlap another subnet of the
        network. Costs the same for a /8 as for a /29: nothing is written per address.
        """
        ...

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        """Add CIDRs to the subnet, each with its gateway, which is kept back (see `SubnetSpec.gateways`).

        Those it has already change nothing, but one that drains gives addresses again, and a gateway that is named for one
        is its gateway from now on: SubnetInUse when a node has that address.
        """
        ...

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        """Let CIDRs drain: nothing more is granted of them, and each leaves the subnet when nothing in it is reserved.

        With `at_once` they leave it now, or none does: SubnetInUse, in words that say who has what of them. Those that the
        subnet does not have left it before. At least one CIDR must be left that does not drain.
        """
        ...

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """Who has addresses of a CIDR, by cluster and node; nobody, where the subnet does not have it any more."""
        ...

    async def remove_subnet(self, network: str, name: str) -> None:
        """Remove the subnet; SubnetInUse while anything in it is reserved. One that is not there is removed already."""
        ...

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """The subnet as it stands."""
        ...

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """The subnets of a network, or of all, by network and name."""
        ...

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """Carry out the whole wish, as far as there are addresses, and answer what the node has now.

        A new id gets a primary first; when those who are owed before it leave no free address for that, the answer is
        SubnetFull, and the newcomer is remembered among those who are owed. What the wish names for release is released, and nothing
        else is, however small the count: unknown names change nothing. Then what is missing to `count` is granted,
        as far as those who are owed before this node leave it: nodes with waiting pods first, more of them before
        fewer, then the longest owed. What could not be given is owed. A claim that nobody renewed by a further PUT for
        `claim_seconds` holds nobody up any longer.

        Free addresses that do not cool down go first; one that cools down goes only when nothing else is free, but
        its last holder may have it at once. Addresses in quarantine go to nobody.

        A node whose primary is in a CIDR that drains may name that too (`core.subnet.grants.primary_name`): it gets another one
        first, as soon as one may be had, and keeps its own until then.

        An older generation of the same request_uid, and any wish for a deleted id, is StaleWish, unless it is to be
        taken anew (`instead_of`): then it is the newest from now on, and a deleted id has a container again. What it
        names for release can only be what the node gave up before, and nothing is taken from the node. The same wish again
        answers the same container and changes nothing unless the node was owed.

        AnotherCluster when the cluster's name, or the container, belongs to another uid than the wish has; a container
        without one takes the wish's. StoreRecovering while the store recovers; it begins to when `seen` is higher than
        any version it gave in the subnet.
        """
        ...

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """The node is gone: everything it held is in quarantine; its claims end. The id never comes back.

        A quarantine does not end by itself: see `move_container` and `end_quarantine`.
        An id that is not known is remembered as deleted, so that a wish that was under way finds it so. AnotherCluster
        when the cluster's name, or the container, belongs to another uid than `cluster_uid`: one that is not given is
        another, whoever asks, for a controller from before clusters had uids cannot be told from the administration. That
        has `forget_cluster`. A container without a uid takes this one into quarantine. StoreRecovering while the store
        recovers: it may not know yet what the node held.
        """
        ...

    async def move_container(self, wish: Wish) -> MoveResult:
        """Like `put_container`, but first the addresses move here that the same machine left under a former uid.

        Those are what is in quarantine in the wish's subnet of removed containers of the same cluster (by name and uid) and
        the same node name, whose Node stated the same machine and boot as the wish does. All of it comes in the same
        transaction, with new names, and a former primary is the primary: so it needs no free address. It comes with the
        container's first version or not at all, because what comes later an agent takes for what nobody has. The same
        again moves nothing.
        """
        ...

    async def quarantined(
        self, *, cluster: str = "", node: str = "", due: bool = False, limit: int = 500, more: str = ""
    ) -> QuarantinePage:
        """What is in quarantine, by removed container, narrowed by any of these; `due`: that has been for long enough.

        No quarantine lasts longer than its length from now, whatever the clock said when it began.
        """
        ...

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        """Let exactly these addresses be free that a removed container left, and answer how many that were.

        It is for the caller to know that no pod has them. What is not in quarantine for that container stays as it is, so
        the same again, or late, changes nothing. AnotherCluster when the container records another uid than `cluster_uid`.
        `reason` is for the log.
        """
        ...

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """What a node has."""
        ...

    async def list_containers(  # noqa: PLR0913 - each narrows the answer in its own way
        self,
        *,
        cluster: str = "",
        node: str = "",
        network: str = "",
        subnet: str = "",
        limit: int = 500,
        more: str = "",
    ) -> ContainerPage:
        """Containers by id, narrowed by any of these, a page at a time."""
        ...

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """Who is owed, in the order they will be served; those whose claim has lapsed come last."""
        ...

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Keep between which bounds a cluster wants the subnet's batch. The same again changes nothing."""
        ...

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """What the batch is decided from, all of one instant, without a scan of containers."""
        ...

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """Let this be in force, if it was decided from what is so: `decided.serial` is the one that was read.

        InForceConflict when somebody changed it since. The same again, after a lost answer, answers the subnet and changes
        nothing. What was decided has the next serial.
        """
        ...

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """How full the subnet is now: one reading, which never scans and may be as old as the cache's refresh."""
        ...

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """Readings from `since` to before `until`, oldest first, thinned out the further back they lie.

        Both are wall-clock seconds. Where readings are thinned out, the highest of its time is kept.
        """
        ...

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """Act for a cluster from now on, and keep doing so: the same again, every few seconds, renews the term.

        The first claim under a name binds the name to its uid; AnotherCluster when it is bound to another.
        AnotherTerm while another holder has a live term under the same uid, whatever the name. The store begins to
        recover when the cluster has seen a version that it never gave, or has seen any in a subnet although the store knows
        neither its name nor its uid nor a container of it.
        """
        ...

    async def close_term(self, claim: TermClaim) -> None:
        """Act no longer: another holder need not wait. A term that is another's, or over, stays as it is."""
        ...

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """Have the container hold exactly what its node has; only while the store recovers, else nothing changes.

        What the store had for the node beyond that goes to quarantine. An address that an earlier report gave to
        another node stays there: the answer says so, a line for each such contradiction.
        """
        ...

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """Put in quarantine, under the name of the pods' node, what they show; only while the store recovers.

        What a report has confirmed as a container's stays there, and so does what a removed Node of that name left, or has
        yet to leave, by the store's own rows: that comes to the same. Answers how many addresses went to quarantine.
        """
        ...

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """All that the cluster's nodes hold was reported. With the last cluster's report the store grants again."""
        ...


class AdministeredAllocator(Allocator, Protocol):
    """An allocator as its administration sees it."""

    async def list_clusters(self) -> ClusterRegistry:
        """All clusters that ever opened a term, have containers or a token, and whether the store grants."""
        ...

    async def move_cluster(self, name: str, *, uid: str) -> None:
        """Let the name belong to the cluster with another uid. Containers keep the uid they record."""
        ...

    async def forget_cluster(self, name: str, *, uid: str | None = None, reason: str = "") -> int:
        """A cluster is gone for ever: delete its containers, and let its name be free. Answers how many were deleted.

        That is the word that no pod has anything of it: what it had is free at once, what was in quarantine too. It is
        heard while the store recovers, which then waits for this cluster no longer.
        With `uid`, only those under the name that record it ("" for none), and the name stays whose it is. `reason` is for
        the log of a service.
        """
        ...

    async def end_recovery(self) -> None:
        """Grant again without the reports that are missing: somebody knows that those clusters hold nothing."""
        ...
