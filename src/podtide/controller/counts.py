"""What a controller has done and seen, counted for whoever charts it."""

from collections import Counter
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


class ControllerCounts(Struct, kw_only=True):
    """Counted from the start of the process, over all its terms of leadership."""

    leading: bool = False
    reconciles: int = 0
    """How often a node was looked at."""
    looks: int = 0
    """How often a subnet was looked at."""
    allocator_calls: Counter[str] = field(default_factory=Counter)
    """By the port's method."""
    writes: Counter[str] = field(default_factory=Counter)
    """Writes to the cluster that succeeded, by kind; NodeNetworkConfig/status for a status."""
    owed_nodes: int = 0
    """Nodes that are owed addresses, as far as this process knows."""
    retired_nodes: int = 0
    """Nodes that were gone, and whose network containers were deleted."""
    subnets: dict[str, SubnetCounts] = field(default_factory=dict)
