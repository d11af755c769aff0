"""The controller's metrics, in a registry of their own. Nothing is kept twice: they are read from the counts when scraped."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podtide.controller.counts import ControllerCounts, RunOutCounts

_SUBNET_GAUGES = {
    "capacity": "Addresses of a subnet that can be reserved (Q).",
    "reserved": "Addresses of a subnet that are reserved, primaries included (R).",
    "containers": "Network containers in a subnet.",
    "owed": "Addresses asked for in a subnet and not granted yet.",
    "exhausted": "Whether a subnet is exhausted: 1 if so.",
    "starved": "Whether a subnet has no free address while nodes are owed some: 1 if so.",
    "batch": "The batch in force for a subnet.",
    "buffer": "The part of a batch that nodes of a subnet keep free.",
    "top": "The largest batch that all clusters of a subnet allow.",
    "unanswered": "Network containers in a subnet that have not answered the batch in force yet.",
}

_RUN_OUT_GAUGES = {
    "expected": ("", "When all addresses of a subnet are reserved, if its use goes on as it did."),
    "earliest": ("_earliest", "When that is at the earliest, at 90 %."),
    "latest": ("_latest", "When that is at the latest, at 90 %."),
}
"""By what each is: what its name has more, and its sentence."""

_SLICE_GAUGES = {
    "assigned": "Slices of a secondary network's range that nodes have.",
    "total": "Slices of a secondary network's range.",
    "waiting": "Nodes that wait for a slice of a secondary network's range.",
}


class ControllerMetrics:
    """The metrics of one controller."""

    def __init__(self, counts: ControllerCounts) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_CountsCollector(counts))

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _CountsCollector(Collector):
    """Reads the counts when it is scraped."""

    def __init__(self, counts: ControllerCounts) -> None:
        self._counts = counts

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering reads nothing."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield _gauge("leading", "Whether this replica leads: 1 if so.", counts.leading)
        yield _gauge(
            "refused",
            "Whether the allocator refuses to let this controller act for its cluster: 1 if so.",
            counts.refused,
        )
        yield _gauge(
            "held_retirements",
            "Nodes that seem deleted, whose deletion was not watched, and whose retirement waits for a second check.",
            counts.held_retirements,
        )
        yield _gauge("owed_nodes", "Nodes that are owed addresses.", counts.owed_nodes)
        yield _counter("reconciles", "Reconciles of nodes.", counts.reconciles)
        yield _counter("looks", "Reconciles of subnets.", counts.looks)
        yield _counter(
            "retired_nodes",
            "Deleted nodes whose network containers were deleted.",
            counts.retired_nodes,
        )
        yield GaugeMetricFamily(
            "podtide_controller_allocator_reachable",
            "Whether the allocator answers: 0 after three calls in a row without an answer. Only while leading.",
            value=counts.allocator_reachable,
        )
        yield _allocator_calls(counts)
        yield _counters("writes", "Writes to the cluster that succeeded.", "kind", counts.writes)
        yield _counter("network_looks", "Reconciles of secondary networks.", counts.network_looks)
        yield _counter(
            "repair_looks", "Passes of leak repair over all secondary networks.", counts.repair.looks
        )
        yield _gauge(
            "repair_suspects",
            "Allocations and reservations that looked like leaks in the last pass of leak repair.",
            counts.repair.suspects,
        )
        yield _counters(
            "repairs",
            "Corrections that leak repair made in secondary networks.",
            "what",
            counts.repair.repairs,
        )
        yield from _gauges("subnet", _SUBNET_GAUGES, "subnet", counts.subnets)
        yield from _run_out_gauges(counts.run_outs)
        yield from _gauges("slices", _SLICE_GAUGES, "pool", counts.slices)


def _gauge(name: str, sentence: str, value: int) -> Metric:
    return GaugeMetricFamily(f"podtide_controller_{name}", sentence, value=value)


def _gauges(
    prefix: str, sentences: dict[str, str], label: str, numbers: Mapping[str, Struct]
) -> Iterator[Metric]:
    for field, sentence in sentences.items():
        family = GaugeMetricFamily(f"podtide_controller_{prefix}_{field}", sentence, labels=(label,))
        for labelled, counted in numbers.items():
            family.add_metric((labelled,), float(getattr(counted, field)))
        yield family


def _run_out_gauges(run_outs: Mapping[str, RunOutCounts]) -> Iterator[Metric]:
    """A subnet that does not run out within a year, or of which too little is known, has no sample."""
    for field, (more, sentence) in _RUN_OUT_GAUGES.items():
        family = GaugeMetricFamily(
            f"podtide_subnet_runs_out{more}_timestamp_seconds", sentence, labels=("subnet",)
        )
        for subnet, run_out in run_outs.items():
            day: date | None = getattr(run_out, field)
            if day is not None:
                family.add_metric((subnet,), datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        yield family


def _counter(name: str, sentence: str, value: int) -> Metric:
    return CounterMetricFamily(f"podtide_controller_{name}", sentence, value=value)


def _allocator_calls(counts: ControllerCounts) -> Metric:
    family = CounterMetricFamily(
        "podtide_controller_allocator_calls",
        "Calls of the allocator, by method and outcome: ok, abandoned (not waited for any longer), or the error's name.",
        labels=("method", "outcome"),
    )
    for labels, value in counts.allocator_calls.items():
        family.add_metric(labels, value)
    return family


def _counters(name: str, sentence: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(f"podtide_controller_{name}", sentence, labels=(label,))
    for labelled, value in values.items():
        family.add_metric((labelled,), value)
    return family
