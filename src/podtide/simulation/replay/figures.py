"""What one run came to: its counts, and samples of it over time. They travel between processes, and into JSON and CSV."""

from msgspec import Struct


class ReplayFigures(Struct, frozen=True, kw_only=True):
    """The counts of one strategy with one batch, since the start was over."""

    strategy: str
    batch: int
    pods: int
    """Pods that came, and those of the start that had no address yet."""
    at_once: int
    """Of those, pods whose first ADD found a free address."""
    delayed: int
    """Pods whose first ADD found none: it failed, or had to wait."""
    unasked: int
    """Pods that went, or were there at the end, before their first ADD was answered."""
    delay_p50_seconds: float
    """Of the delayed: from the first ADD to the address, or until the pod went, or to the end."""
    delay_p99_seconds: float
    delay_max_seconds: float
    ready_p99_seconds: float
    """Of all pods that got an address: from being scheduled to having it, the kubelet's own time included."""
    ready_max_seconds: float
    abandoned: int
    """Pods that went without ever having had an address, although they had asked."""
    unserved: int
    """Pods without an address at the end."""
    failed_adds: int
    idle_mean: float
    """Addresses granted to nodes that no pod has, without the nodes' own."""
    idle_p99: int
    reserved_max: int
    """The most addresses granted to nodes, with the nodes' own."""
    requests: int
    """Requests that agents wrote."""
    api_writes: int
    """All writes of agents and controller to the API server."""
    allocator_writes: int
    exhausted_times: int
    exhausted_seconds: float
    """In the trace's own time."""
    starved_times: int
    starved_seconds: float
    lowest_batch: int
    """The smallest batch in force."""
    seconds: float
    """How long the run was, in the trace's own time."""


class ReplaySample(Struct, frozen=True, kw_only=True):
    """The counts at one moment. Sums are since the start was over."""

    second: float
    """Of the trace's own time."""
    pods: int
    waiting: int
    """Pods without an address."""
    idle: int
    reserved: int
    batch_in_force: int
    exhausted: bool
    starved: bool
    delayed: int
    failed_adds: int
    requests: int
    api_writes: int
    allocator_writes: int


class ReplayOutcome(Struct, frozen=True):
    """The figures of one run, and its samples."""

    figures: ReplayFigures
    samples: tuple[ReplaySample, ...]
