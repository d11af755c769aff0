"""What a controller has done and seen, counted for metrics."""

from collections import Counter
from datetime import date
from fractions import Fraction

from msgspec import Struct, field


class SubnetCounts(Struct, frozen=True, kw_only=True):
    """A subnet as last read, and what was decided for it."""

    capacity: int
    reserved: int
    containers: int
    owed: int
    exhausted: bool
    starved: bool
    batch: int
    buffer: Fraction
    top: int
    unanswered: int


class RunOutCounts(Struct, frozen=True):
    """On which day all addresses of a subnet are reserved, by the latest forecast; None for a date that is not named."""

    expected: date | None = None
    earliest: date | None = None
    latest: date | None = None


class SliceCounts(Struct, frozen=True, kw_only=True):
    """A secondary network's range that is cut into slices, as of its last reconcile."""

    assigned: int
    total: int
    waiting: int
    """Nodes that wait for a slice."""


REPAIRS = ("allocation-released", "reservation-released", "reservation-corrected", "reservation-restored")
"""What leak repair does. Each is counted from zero, so that the first one is an increase."""


class RepairCounts(Struct, kw_only=True):
    """What leak repair has done and seen since the start of the process."""

    looks: int = 0
    suspects: int = 0
    """Allocations and reservations that looked like leaks in the last pass."""
    repairs: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(REPAIRS, 0)))
    """By what was done: one of `REPAIRS`."""


class ControllerCounts(Struct, kw_only=True):
    """Counters since the start of the process, over all its terms of leadership."""

    leading: bool = False
    reconciles: int = 0
    """Reconciles of nodes."""
    looks: int = 0
    """Reconciles of subnets."""
    allocator_calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the method of the port, and the outcome."""
    allocator_reachable: bool | None = None
    """Whether the allocator answers; None where that is not known: before the first answer, and while not leading."""
    allocator_error: str = ""
    """Why it counts as unavailable; "" while it does not."""
    writes: Counter[str] = field(default_factory=Counter)
    """Writes to the cluster that succeeded, by kind; NodeNetworkConfig/status for a status."""
    owed_nodes: int = 0
    """Nodes that are owed addresses, as far as this process knows."""
    refused: bool = False
    """Whether the allocator refuses to let this controller act for its cluster."""
    held_retirements: int = 0
    """Nodes that seem deleted, whose deletion was not watched, and whose retirement waits for a second sweep."""
    retired_nodes: int = 0
    """Deleted nodes whose network containers were deleted."""
    subnets: dict[str, SubnetCounts] = field(default_factory=dict)
    run_outs: dict[str, RunOutCounts] = field(default_factory=dict)
    """By subnet."""
    network_looks: int = 0
    """Reconciles of secondary networks."""
    slices: dict[str, SliceCounts] = field(default_factory=dict)
    """By the name of the NodeSlicePool."""
    repair: RepairCounts = field(default_factory=RepairCounts)
