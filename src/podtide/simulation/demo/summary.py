"""The figures of a story, from the trace."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.trace import AllocatorCall, ClusterWrite, Entry, PluginCall


class Summary(Struct, frozen=True, kw_only=True):
    """Figures over the whole story."""

    seconds: float
    served: int
    failed_adds: int
    removed: int
    add_p50_seconds: float
    add_p99_seconds: float
    requests: int
    allocator_calls: int
    exhausted_seconds: float
    starved_seconds: float
    peak_reserved: int
    capacity: int

    def lines(self) -> Iterator[str]:
        """The figures in sentences."""
        yield f"{self.served} pods got an address and {self.removed} gave one back in {self.seconds:.0f} s"
        yield (
            f"ADD, plugin process included: half within {1000 * self.add_p50_seconds:.0f} ms, "
            f"99 of 100 within {1000 * self.add_p99_seconds:.0f} ms; {self.failed_adds or 'none'} failed"
        )
        yield f"{self.requests} requests written by agents, {self.allocator_calls} calls of the allocator"
        yield (
            f"at most {self.peak_reserved} of {self.capacity} addresses reserved; exhausted for "
            f"{self.exhausted_seconds:.1f} s, starved for {self.starved_seconds:.1f} s"
        )


def summarize(
    entries: Sequence[Entry], *, began: float, ended: float, peak_reserved: int, capacity: int
) -> Summary:
    """The figures of a story that was played from `began` to `ended`."""
    calls = [entry for entry in entries if isinstance(entry, PluginCall)]
    took = sorted(call.took_seconds for call in calls if call.verb == "ADD" and call.ok)
    writes = [entry for entry in entries if isinstance(entry, ClusterWrite)]
    return Summary(
        seconds=ended - began,
        served=sum(call.verb == "ADD" and call.ok and not call.network for call in calls),
        failed_adds=sum(call.verb == "ADD" and not call.ok for call in calls),
        removed=sum(call.verb == "DEL" and call.ok and not call.network for call in calls),
        add_p50_seconds=_quantile(took, 50),
        add_p99_seconds=_quantile(took, 99),
        requests=sum(write.verb == "apply" and isinstance(write.item, NodeNetworkConfig) for write in writes),
        allocator_calls=sum(isinstance(entry, AllocatorCall) for entry in entries),
        exhausted_seconds=_seconds_of("exhausted", writes, ended),
        starved_seconds=_seconds_of("starved", writes, ended),
        peak_reserved=peak_reserved,
        capacity=capacity,
    )


def _quantile(ordered: Sequence[float], percent: int) -> float:
    """The quantile of sorted values; 0 if there are none."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


def _seconds_of(flag: str, writes: Sequence[ClusterWrite], ended: float) -> float:
    """How long a flag of the ClusterSubnet's status was set."""
    total, since = 0.0, None
    for write in writes:
        if not isinstance(write.item, ClusterSubnet):
            continue
        is_so = getattr(write.item.status, flag)
        if is_so and since is None:
            since = write.at
        elif not is_so and since is not None:
            total, since = total + write.at - since, None
    return total + (ended - since if since is not None else 0.0)
