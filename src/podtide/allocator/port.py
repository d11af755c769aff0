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

from msgspec import Struct

from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.core.errors import FixError, PodtideError, RetryError
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.core.subnet.statement import StatedDemand


class AllocatorError(PodtideError):
    """The allocator answered no, or did not answer. Every method of the port raises only these and InvalidInput."""


class NoSuchSubnet(AllocatorError, FixError):
    """No network or subnet of that name."""


class NoSuchContainer(AllocatorError, FixError):
    """No container of that id, or it is another cluster's."""


class SubnetExists(AllocatorError, FixError):
    """A subnet of that name is there with other properties, or its addresses overlap another's."""


class SubnetInUse(AllocatorError, FixError):
    """Containers, or addresses in quarantine, are still in the subnet, or in the CIDR that is to leave it."""


class SubnetFull(AllocatorError, RetryError):
    """Not even a primary is left for a new container. It is remembered among those who are owed."""


class StaleWish(AllocatorError, FixError):
    """A newer wish was taken, or the container was deleted: this one came too late and changes nothing."""


class InForceConflict(AllocatorError, RetryError):
    """Somebody else changed what is in force since it was read: read it again and decide anew."""


class AnotherCluster(AllocatorError, FixError):
    """The name belongs to the cluster with another uid, or the container does."""


class AnotherTerm(AllocatorError, RetryError):
    """Another controller, of a cluster with the same uid, has a term that is not over."""


class StoreRecovering(AllocatorError, RetryError):
    """The store went back, and grants nothing until every cluster has reported what its nodes hold."""


class NotAllowed(AllocatorError, FixError):
    """The credential may not do this."""


class AllocatorUnavailable(AllocatorError, RetryError):
    """No answer: whether the call took effect is unknown. Make it again."""


class SubnetSpec(Struct, frozen=True, kw_only=True):
    """A subnet as a person states it."""

    network: str
    name: str
    cidrs: tuple[str, ...]
    gateways: tuple[str, ...] = ()
    """Each is an address of the CIDR it is for. Of a CIDR that none is named for, it is the first usable address."""
    keep_back: tuple[str, ...] = ()
    """Addresses never to be given, beside network, last address and gateway."""
    keep_back_first: int = 0
    """How many of the lowest usable addresses after the gateways are kept back as well."""


class SubnetInForce(Struct, frozen=True, kw_only=True):
    """What is in force for every node of a subnet, in all clusters that share it. Fractions are exact text."""

    batch: int = 0
    """0 until it was decided for the first time."""
    buffer: str = "0"
    top: int = 0
    """The largest batch that all clusters allow."""
    exhausted: bool = False
    starved: bool = False
    step: str = ""
    """What moved last, in the words of an Event's reason."""
    reason: str = ""
    """Why, for people in every cluster."""
    serial: int = 0
    """Grows by one with every change: whoever decides says from which one."""
    age_seconds: float = 0.0
    """Since when batch, buffer and starved are so, by the allocator's clock. What a caller gives is ignored."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Between which bounds a cluster wants the subnet's batch (see `core.subnet.batch_bounds`). Fractions are exact text."""

    batch: int
    buffer: str
    lower: str
    upper: str
    min_batch: int = 1
    fixed: int | None = None


class ClusterBounds(Struct, frozen=True):
    """The bounds of one cluster."""

    cluster: str
    bounds: Bounds


class ContainerCount(Struct, frozen=True):
    """How many containers of a subnet are alike in what decides its batch (see `core.subnet.demand_by_batch.ContainerDemand`)."""

    stated: StatedDemand
    taken: int
    containers: int


class Subnet(Struct, frozen=True, kw_only=True):
    """A subnet as it stands."""

    network: str
    name: str
    cidrs: tuple[str, ...]
    gateways: tuple[str, ...]
    """One for each CIDR; "" for one that has none, because all of it was in use when it was to get one."""
    keep_back: tuple[str, ...]
    keep_back_first: int
    capacity: int
    """Q: addresses that can be reserved."""
    reserved: int
    """R: primaries, secondaries, and addresses in quarantine."""
    containers: int
    owed: int
    """Addresses asked for and not granted yet, by all containers together."""
    quarantined: int = 0
    """Of the reserved ones, those of removed nodes, which go to nobody for a while."""
    in_force: SubnetInForce = SubnetInForce()
    draining: tuple[str, ...] = ()
    """The CIDRs that drain: nothing is granted of them, and each leaves the subnet when nothing in it is reserved."""
    draining_reserved: int = 0
    """Of the reserved ones, those in CIDRs that drain. They are in Q until they are given back."""


class CidrHolder(Struct, frozen=True, kw_only=True):
    """A container that has addresses of a CIDR."""

    container: str
    cluster: str
    node: str
    primary: bool
    """Whether its primary address is in it."""
    addresses: int
    """How many of its secondary addresses are in it."""


class CidrHolders(Struct, frozen=True, kw_only=True):
    """What of a CIDR is reserved, and for whom."""

    cidr: str
    holders: tuple[CidrHolder, ...]
    quarantined: int
    """Addresses of removed nodes."""


class SubnetDemandReport(Struct, frozen=True, kw_only=True):
    """All that the batch of a subnet is decided from, of one instant."""

    subnet: Subnet
    alike: tuple[ContainerCount, ...]
    """Every container once, newcomers that wait for their primary among them."""
    bounds: tuple[ClusterBounds, ...]
    """Of the clusters that have containers in the subnet, by name."""


class LastWish(Struct, frozen=True, kw_only=True):
    """The wish that an older one is to be taken in place of. Empty: the container is deleted, or has no address yet."""

    request_uid: str = ""
    generation: int = 0


class Wish(Struct, frozen=True, kw_only=True):
    """All that a node wants of a subnet. `id` is the Node's uid."""

    id: str
    network: str
    subnet: str
    cluster: str
    node: str
    request_uid: str
    """The uid of the NodeNetworkConfig."""
    generation: int
    """The NodeNetworkConfig's generation: of two wishes with one request_uid, the higher is the newer."""
    count: int
    """Secondary addresses wanted in all."""
    release: tuple[str, ...] = ()
    """Names of addresses the node gives back for good; its primary's is `core.subnet.grants.primary_name`."""
    waiting_pods: int = 0
    """Pods on the node that have no address: nodes with more of them are served first."""
    stated: StatedDemand | None = None
    """What is known of the node's demand; None is a container that has asked for nothing yet."""
    statement_number: int = 0
    """Grows with every statement of the node: of two wishes with one generation, what the higher states is the newer."""
    cluster_uid: str = ""
    """Who the cluster is (see `core.subnet.cluster_identity`); the container records it. "" for whoever is no cluster."""
    seen: int = 0
    """The highest version of any container in the subnet that the cluster has seen (see `core.subnet.store_continuity`)."""
    machine: MachineIdentity = UNKNOWN_MACHINE
    """What the living Node states it runs on; one that is not known leaves what was stated before."""
    instead_of: LastWish | None = None
    """Given only for a request object that went back, as after a restore of etcd: the last wish that was taken, as read
    before a fresh read showed the older object (see `core.subnet.grants.is_taken_anew`)."""


class GrantedAddress(Struct, frozen=True):
    """A secondary address. Its name is minted for this grant and never used again."""

    name: str
    ip: str


class CidrInUse(Struct, frozen=True):
    """A CIDR that a container has addresses of, and its gateway."""

    cidr: str
    gateway: str


class AllocatedContainer(Struct, frozen=True, kw_only=True):
    """What a node has of a subnet."""

    id: str
    network: str
    subnet: str
    cluster: str
    node: str
    primary: str
    gateway: str
    """Of the CIDR that the primary is in."""
    cidr: str
    """The subnet's CIDR that the primary is in."""
    addresses: tuple[GrantedAddress, ...]
    """In the order of their names' minting."""
    version: int
    """Grows with every change of what is granted, and never otherwise; drawn from the subnet's sequence."""
    request_uid: str
    generation: int
    wanted: int
    owed: int
    """How many more were wanted than could be given."""
    cidrs: tuple[CidrInUse, ...] = ()
    """Every CIDR that its addresses are in, the primary's first: prefix length and gateway are those of the CIDR."""
    cluster_uid: str = ""
    """The uid of the cluster that it is of; "" for one from before clusters had uids."""


class MoveResult(Struct, frozen=True, kw_only=True):
    """What came of moving a former Node's addresses to the one that its machine is now."""

    container: AllocatedContainer
    moved: tuple[str, ...]
    """The addresses that came, a former primary among them."""
    missing: int
    """How many the former Node had beside these when it was removed: others may have them."""


class Quarantined(Struct, frozen=True, kw_only=True):
    """What a removed container left, and nobody gets until somebody who looked says so."""

    container: str
    cluster: str
    cluster_uid: str
    """"" for what was removed before clusters had uids."""
    node: str
    network: str
    subnet: str
    addresses: tuple[str, ...]
    machine: MachineIdentity
    """What its Node last stated to run on."""
    until: float
    """Wall-clock seconds of the allocator, before which nobody should say so."""
    seconds_left: float
    """How long that is, by the allocator's clock; 0 when it is over."""


class QuarantinePage(Struct, frozen=True):
    """One page of a list; `more` is the token for the next, "" on the last."""

    items: tuple[Quarantined, ...]
    more: str = ""


class Debt(Struct, frozen=True, kw_only=True):
    """Somebody who is owed addresses, in the order they will be served."""

    container: str
    cluster: str
    node: str
    owed: int
    waiting_pods: int
    since: float
    """Wall-clock seconds since when."""


class Utilization(Struct, frozen=True):
    """How full a subnet was at one time. `timestamp` is RFC 3339; the wire's own names (WIRE.md section 2)."""

    timestamp: str
    capacity: int
    reserved: int


class ContainerPage(Struct, frozen=True):
    """One page of a list; `more` is the token for the next, "" on the last."""

    items: tuple[AllocatedContainer, ...]
    more: str = ""


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
