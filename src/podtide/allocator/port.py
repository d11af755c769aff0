"""The Allocator port: what the request controller, and people, may ask of the owner of the subnets.

The docstrings here are the contract. One suite proves it for the allocator in this process on SQLite, on PostgreSQL,
and for the HTTP client against the service. Every call may be made again: an answer that was lost costs nothing.

An address of a subnet is in exactly one state:

    reserved     a container's primary or secondary, or in quarantine: counted in R
    free         no container's; among these, some cool down and are given last
    kept back    a CIDR's network and last address, its gateway, and what the subnet keeps for others: not counted in Q
    drained      of a CIDR that drains, and not reserved: not counted in Q, and never granted

So Q = R + free, always, in every transaction.
"""

from typing import Protocol, Unpack

from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerFilter,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
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


class Allocator(Protocol):
    """The owner of the subnets, as one caller sees it."""

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Create the subnet; its network appears with its first subnet. The same again returns the existing one.

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
        """Drain CIDRs: nothing more is granted of them, and each leaves the subnet when nothing in it is reserved.

        With `at_once` they leave it now, or none does: SubnetInUse, in words that say who has what of them. Those
        that the subnet does not have left it before. At least one CIDR must be left that does not drain.
        """
        ...

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """The containers with addresses of a CIDR, by cluster and node; none where the subnet no longer has the CIDR."""
        ...

    async def remove_subnet(self, network: str, name: str) -> None:
        """Delete the subnet; SubnetInUse while anything in it is reserved. Idempotent."""
        ...

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """The subnet's current state."""
        ...

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """The subnets of a network, or of all, by network and name."""
        ...

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """Carry out the whole wish, as far as there are addresses, and return what the node has now. Idempotent.

        A new id gets a primary first; when those who are owed before it leave no free address for that, the answer is
        SubnetFull, and the newcomer is remembered among those who are owed. What the wish names for release is
        released, and nothing else is, however small the count: unknown names change nothing. Then what is missing to
        `count` is granted, as far as those who are owed before this node leave it: nodes with waiting pods first,
        more of them before fewer, then the longest owed. What could not be given is owed. A claim that no
        further PUT renewed for `claim_seconds` does not hold up others any longer.

        Free addresses that do not cool down go first; one that cools down goes only when nothing else is free, but
        its last holder may have it at once. Addresses in quarantine are not granted.

        A node whose primary is in a CIDR that drains may name that too (`core.subnet.grants.primary_name`): it gets
        another one first, as soon as one may be had, and keeps its own until then.

        An older generation of the same request_uid, and any wish for a deleted id, is StaleWish, unless it is to be
        taken anew (`instead_of`): then it is the newest from now on, and a deleted id has a container again. What it
        names for release can only be what the node gave up before, and nothing is taken from the node. The same wish
        again answers the same container and changes nothing unless the node was owed.

        AnotherCluster when the cluster's name, or the container, belongs to another uid than the wish has; a
        container without one takes the wish's. StoreRecovering while the store recovers; it begins to when `seen` is
        higher than any version it gave in the subnet.
        """
        ...

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """Delete a removed Node's container: its addresses go into quarantine, its claims end, its id is never reused.

        A quarantine does not end by itself: see `move_container` and `end_quarantine`. An id that is not known is
        remembered as deleted, so that a wish that was under way finds it so. AnotherCluster when the cluster's name,
        or the container, belongs to another uid than `cluster_uid`: one that is not given is another, whoever asks,
        for a controller from before clusters had uids cannot be told from the administration. That has
        `forget_cluster`. A container without a uid takes this one into quarantine. StoreRecovering while the store
        recovers: it may not know yet what the node held.
        """
        ...

    async def move_container(self, wish: Wish) -> MoveResult:
        """Like `put_container`, but first moves here the addresses that the same machine left under a former uid.

        Those are what is in quarantine in the wish's subnet of removed containers of the same cluster (by name and
        uid) and the same node name, whose Node stated the same machine and boot as the wish does. All of it comes in
        the same transaction, with new names, and a former primary is the primary: so it needs no free address. It
        comes with the container's first version or not at all, because what comes later an agent takes for what
        nobody has. The same again moves nothing.
        """
        ...

    async def reserve_container(self, reservation: ContainerReservation) -> AllocatedContainer:
        """Have the node's container hold these very addresses, which another program gave it; all of them or none.

        Those that it does not have yet get new names. What it has beside them stays: a container that podtide serves
        already may have been granted more, and nothing is taken from it. The same again changes nothing.

        SubnetInUse when another container has one of them, or left it in quarantine. InvalidInput when the subnet
        cannot give one, or the container has another primary, is in another subnet, or is another node's. StaleWish
        when the id was deleted, AnotherCluster and StoreRecovering as for `put_container`.
        """
        ...

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        """One page of what is in quarantine, by removed container; `due` limits it to quarantines that are over.

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
        """Free exactly these addresses that a removed container left; returns how many that were.

        It is for the caller to know that no pod has them. What is not in quarantine for that container stays as it
        is, so the same again, or late, changes nothing. AnotherCluster when the container records another uid than
        `cluster_uid`. `reason` is for the log.
        """
        ...

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """The container and its addresses."""
        ...

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        """Containers by id, narrowed by any of these, a page at a time."""
        ...

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """The containers that are owed addresses, in the order they will be served; lapsed claims come last."""
        ...

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Store the bounds that a cluster sets for the subnet's batch. Idempotent."""
        ...

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """The counts that the batch is decided from, all of one instant, without a scan of containers."""
        ...

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """Put this batch in force by compare-and-set: `decided.serial` is the one that was read.

        InForceConflict when it changed since. Idempotent: the same again, after a lost answer, returns the subnet and
        changes nothing. What was decided has the next serial.
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

    async def usage_history(
        self, network: str, name: str, *, since: float, until: float, step: UsageStep = "auto"
    ) -> tuple[SubnetUsage, ...]:
        """How the subnet was used from `since` to before `until`, in rows of one length, oldest first.

        Both are wall-clock seconds. The rows that the time from `since` to `until` touches are answered as far as they are
        kept: those of 5s for an hour, 1m for a day, 15m for 90 days and 1d for 731 days, which are days of UTC. "auto" is the
        finest that reaches back to `since`. A time in which nothing was recorded has no row, and no row begins after now. An
        answer has at most `core.subnet.usage_series.MOST_ROWS` rows. InvalidInput when `since` is after `until`, or there is
        no such step.
        """
        ...

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        """Open a cluster's term, or renew it: to be repeated every few seconds.

        The first claim under a name binds the name to its uid; AnotherCluster when it is bound to another.
        AnotherTerm while another holder has a live term under the same uid, whatever the name. The store begins to
        recover when the cluster has seen a version that it never gave, or has seen any in a subnet although the store
        knows neither its name nor its uid nor a container of it.
        """
        ...

    async def close_term(self, claim: TermClaim) -> None:
        """End the holder's own term, so that another need not wait. A term that is another's, or over, stays as it is."""
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
        """End the cluster's report of what its nodes hold. With the last cluster's report the store grants again."""
        ...


class AdministeredAllocator(Allocator, Protocol):
    """The allocator with the operations of its administrators."""

    async def list_clusters(self) -> ClusterRegistry:
        """All clusters that ever opened a term, have containers or a token, and whether the store recovers."""
        ...

    async def move_cluster(self, name: str, *, uid: str) -> None:
        """Bind the cluster's name to another uid. Containers keep the uid they record."""
        ...

    async def forget_cluster(self, name: str, *, uid: str | None = None, reason: str = "") -> int:
        """Delete a cluster that is gone for good, with its containers, and free its name. Returns how many it had.

        That is the word that no pod has anything of it: what it had is free at once, what was in quarantine too. It
        is heard while the store recovers, which then waits for this cluster no longer. With `uid`, only those under
        the name that record it ("" for none), and the name stays whose it is. `reason` is for the log of a service.
        """
        ...

    async def end_recovery(self) -> None:
        """End the recovery without the reports that are missing: those clusters are known to hold nothing."""
        ...
