"""The allocator's metrics, in a registry of their own so that two services can run in one process."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from podtide.allocator.subnets import Subnet
from podtide.allocator.terms import ClusterRegistry

_BUCKETS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_OF_A_SUBNET = ("network", "subnet")


class AllocatorMetrics:
    """The service's metrics."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "podtide_allocator_requests",
            "Requests answered, by the path's pattern and the outcome: ok, or the error's name.",
            ("method", "route", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "podtide_allocator_request_seconds",
            "How long requests took, by the path's pattern.",
            ("method", "route"),
            buckets=_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self._database_up = Gauge(
            "podtide_allocator_database_up",
            "Whether the database answered when these metrics were read.",
            registry=self._registry,
        )
        self._recovering = Gauge(
            "podtide_allocator_recovering",
            "Whether the allocator recovers after a restore of its database and grants nothing: 1 if so.",
            registry=self._registry,
        )
        self._awaited = Gauge(
            "podtide_allocator_awaited_clusters",
            "Clusters whose reports a recovering allocator waits for.",
            registry=self._registry,
        )
        self._gauges = {
            "capacity": self._subnet_gauge("capacity", "Addresses of a subnet that can be reserved (Q)."),
            "reserved": self._subnet_gauge(
                "reserved", "Addresses of a subnet that are reserved, primaries and quarantine included (R)."
            ),
            "owed": self._subnet_gauge("owed", "Addresses asked for in a subnet and not granted yet."),
            "containers": self._subnet_gauge("containers", "Network containers in a subnet, one per node."),
        }

    def count(self, method: str, route: str, outcome: str, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(method, route, outcome).inc()
        self._seconds.labels(method, route).observe(seconds)

    def show_subnets(self, subnets: Iterable[Subnet] | None) -> None:
        """Set the gauges of all subnets; None when the database cannot be read."""
        for gauge in self._gauges.values():
            gauge.clear()
        self._database_up.set(subnets is not None)
        for subnet in subnets or ():
            for field, gauge in self._gauges.items():
                gauge.labels(subnet.network, subnet.name).set(getattr(subnet, field))

    def show_recovery(self, registry: ClusterRegistry | None) -> None:
        """Set the gauge of the recovery; unchanged when the database cannot be read."""
        if registry is not None:
            self._recovering.set(bool(registry.recovering))
            self._awaited.set(len(registry.awaited))

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _subnet_gauge(self, field: str, sentence: str) -> Gauge:
        return Gauge(f"podtide_allocator_{field}", sentence, _OF_A_SUBNET, registry=self._registry)
