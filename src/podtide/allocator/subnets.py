"""A subnet as callers of the allocator state it and see it: its definition, how full it is, and what decides its batch."""

from typing import Literal, TypeAlias

from msgspec import Struct

from podtide.core.audit.invariants import Ledger
from podtide.core.subnet.statement import StatedDemand


class SubnetSpec(Struct, frozen=True, kw_only=True):
    """A subnet's definition."""

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
    """The parameters in force for every node of a subnet, in all clusters that share it. Fractions are exact text."""

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
    """Grows by one with every change, for compare-and-set."""
    age_seconds: float = 0.0
    """Since when batch, buffer and starved are so, by the allocator's clock. What a caller gives is ignored."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The bounds that a cluster sets for the batch (see `core.subnet.batch_bounds`). Fractions are exact text."""

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
    """How many containers state and take the same (see `core.subnet.demand_by_batch.ContainerDemand`)."""

    stated: StatedDemand
    taken: int
    containers: int


class Subnet(Struct, frozen=True, kw_only=True):
    """A subnet's current state."""

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
    """Of the reserved ones, those of removed nodes, which are not granted for a while."""
    in_force: SubnetInForce = SubnetInForce()
    draining: tuple[str, ...] = ()
    """The CIDRs that drain: nothing is granted of them, and each leaves the subnet when nothing in it is reserved."""
    draining_reserved: int = 0
    """Of the reserved ones, those in CIDRs that drain. They are in Q until they are given back."""

    def ledger(self, held: int) -> Ledger:
        """The counts for an audit. What is reserved beyond what containers hold must be in quarantine."""
        resting = max(0, self.reserved - held)
        return Ledger(
            subnet=self.name,
            capacity=self.capacity,
            reserved=self.reserved - resting,
            free=self.capacity - self.reserved,
            resting=resting,
        )


class CidrHolder(Struct, frozen=True, kw_only=True):
    """A container that has addresses of a CIDR."""

    container: str
    cluster: str
    node: str
    primary: bool
    """Whether its primary address is in it."""
    addresses: int
    """How many of its secondary addresses are in it."""

    @property
    def words(self) -> str:
        """What it has of the CIDR, for people."""
        parts = ["its primary address"] if self.primary else []
        return " and ".join([*parts, f"{self.addresses} for pods"] if self.addresses else parts)


class CidrHolders(Struct, frozen=True, kw_only=True):
    """The reserved addresses of a CIDR, by holder."""

    cidr: str
    holders: tuple[CidrHolder, ...]
    quarantined: int
    """Addresses of removed nodes."""


class SubnetDemandReport(Struct, frozen=True, kw_only=True):
    """The inputs of the decision on a subnet's batch, all of one instant."""

    subnet: Subnet
    alike: tuple[ContainerCount, ...]
    """Every container once, newcomers that wait for their primary among them."""
    bounds: tuple[ClusterBounds, ...]
    """Of the clusters that have containers in the subnet, by name."""


class Debt(Struct, frozen=True, kw_only=True):
    """A container that is owed addresses."""

    container: str
    cluster: str
    node: str
    owed: int
    waiting_pods: int
    since: float
    """Wall-clock seconds since when."""


class Utilization(Struct, frozen=True):
    """How full a subnet was at one time. `timestamp` is RFC 3339; the wire's own names (design W7)."""

    timestamp: str
    capacity: int
    reserved: int


UsageStep: TypeAlias = Literal["auto", "5s", "1m", "15m", "1d"]
"""How long the rows of a history are; "auto" for the shortest that reach back far enough (see `core.subnet.usage_series`)."""


class SubnetUsage(Struct, frozen=True, kw_only=True):
    """How a subnet was used during one row's time.

    Figures are the highest of that time, and `…_mean` the mean over the part of it that was observed, or the highest where
    none was. What comes from nodes' statements is read once a minute, and is explained in `core.subnet.demand_reading`; it is
    None where there was no such reading, as in rows of 5 seconds and those from before these were kept.
    """

    timestamp: str
    """When the row's time begins, RFC 3339."""
    step_seconds: int
    """How long the row's time is."""
    observed_seconds: float
    """For how much of it the allocator knows what was reserved: less if it was down, or the time is not over."""
    capacity: int
    """Q at the end of the observed time."""
    reserved: int
    """R. It may be above `capacity` if the subnet shrank since."""
    reserved_mean: float
    demand: int | None = None
    """Pods that need an address."""
    demand_mean: float | None = None
    need: int | None = None
    """What would be reserved with batch 1: the true need."""
    need_mean: float | None = None
    on_pods: int | None = None
    on_pods_mean: float | None = None
    idle: int | None = None
    idle_mean: float | None = None
    owed: int | None = None
    containers: int | None = None
    batch: int | None = None
    """The one in force at the end; 0 if none was decided yet."""
    exhausted_seconds: float = 0.0
    """For how long of the observed time it was exhausted."""
    starved_seconds: float = 0.0
