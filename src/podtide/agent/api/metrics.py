"""The agent's metrics, in a registry of their own so that many agents can run in one process.

What the pool holds is not kept a second time: it is read from the addresses when somebody scrapes. The `cx_ipam_*`
names and labels are those that users of Azure CNS have in their charts (design W6); the rest is podtide's own.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podtide.agent.networks.counts import Counts
from podtide.agent.port import Addresses, NodeState
from podtide.cni.versions import Verb
from podtide.core.pool.states import State

_BUCKETS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_VERBS = frozenset(Verb)
_OF_A_SUBNET = ("subnet", "subnet_cidr")


class Metrics:
    """What is counted and measured."""

    def __init__(self, addresses: Addresses, networks: Counts | None = None) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_NodeCollector(addresses, networks or Counts()))
        self._calls = Counter(
            "podtide_agent_calls",
            "Calls answered, by verb and outcome: ok, abandoned (nobody waited any more), or the error's name.",
            ("verb", "outcome"),
            registry=self._registry,
        )
        self._add_seconds = Histogram(
            "podtide_agent_add_seconds",
            "How long ADDs took from their arrival to their answer, the wait for an address included.",
            buckets=_BUCKETS_SECONDS,
            registry=self._registry,
        )

    def count(self, verb: str, outcome: str, seconds: float) -> None:
        """A call was answered."""
        # What is no verb comes from whoever calls by hand, and must not become a series of its own each time.
        self._calls.labels(verb if verb in _VERBS else "other", outcome).inc()
        if verb == Verb.ADD:
            self._add_seconds.observe(seconds)

    def render(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry)


class _NodeCollector(Collector):
    """The node as it is when it is looked at."""

    def __init__(self, addresses: Addresses, networks: Counts) -> None:
        self._addresses = addresses
        self._networks = networks

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering reads nothing."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        state = self._addresses.state()
        yield from _subnet_metrics(state)
        yield from _node_metrics(state)
        yield from _network_metrics(self._networks)


def _subnet_metrics(state: NodeState) -> Iterator[Metric]:
    """Those of CNS. While the subnet is not known there are none: an empty label would be another series."""
    counts, scaler = state.counts, state.scaler
    secondaries = sum(counts.values()) - counts.get(State.ORPHANED, 0)
    table: tuple[tuple[str, str, int | None], ...] = (
        (
            "pod_allocated_ips",
            "Addresses that pods on this node have.",
            _count(state, State.ASSIGNED, State.ORPHANED),
        ),
        ("available_ips", "Addresses on this node that are free for a pod.", _count(state, State.AVAILABLE)),
        ("batch_size", "Addresses the node's pool grows and shrinks by.", scaler.batch if scaler else None),
        ("max_ips", "The most addresses this node may ask for.", scaler.max_ips if scaler else None),
        (
            "pending_programming_ips",
            "Addresses granted to this node that cannot be handed out yet.",
            _count(state, State.PENDING_PROGRAMMING, State.QUARANTINED),
        ),
        (
            "pending_release_ips",
            "Addresses this node has given up and that are still reserved for it.",
            _count(state, State.PENDING_RELEASE),
        ),
        ("primary_ips", "Primary addresses of this node's network containers.", state.primaries),
        ("requested_ips", "Addresses this node asks for.", state.requested),
        ("secondary_ips", "Addresses reserved for pods of this node.", secondaries),
        ("total_ips", "Addresses reserved for this node, primaries included.", secondaries + state.primaries),
        ("subnet_exhaustion_state", "Whether the subnet is exhausted: 1 if so.", int(state.exhausted)),
    )
    for name, sentence, value in table:
        family = GaugeMetricFamily(f"cx_ipam_{name}", sentence, labels=_OF_A_SUBNET)
        if state.subnet and value is not None:
            family.add_metric((state.subnet, state.subnet_cidr), value)
        yield family


def _node_metrics(state: NodeState) -> Iterator[Metric]:
    yield _gauge(
        "synced", "Whether the agent has seen its pods, its NodeNetworkConfig and its subnet.", state.synced
    )
    yield _gauge(
        "in_contact",
        "Whether the cluster was heard of lately; without, nothing is handed out.",
        state.in_contact,
    )
    yield _gauge("demand", "Pods of this node that need an address, with or without one (U).", state.demand)
    yield _gauge("waiting_pods", "Pods of this node that have no address yet.", state.waiting_pods)
    yield _gauge(
        "starved", "Whether the subnet has nothing left and nodes keep no free address.", state.starved
    )
    yield _counter("request_writes", "How often the NodeNetworkConfig's request was written.", state.writes)
    yield _counter(
        "restatements",
        "How often the node stated its demand anew beside a request that stayed as it was.",
        state.restatements,
    )
    yield _counter(
        "collected_leaks",
        "Addresses freed because their pod was gone and no DEL came.",
        state.collected_leaks,
    )
    yield _counter(
        "alarms",
        "How often a network container lacked what it must not lack, or granted another's.",
        state.alarms,
    )
    by_state = GaugeMetricFamily(
        "podtide_agent_addresses",
        "Addresses of the pool by state, podtide's own states included.",
        labels=("state",),
    )
    for each in State:
        by_state.add_metric((each.value,), state.counts.get(each, 0))
    yield by_state


def _network_metrics(counts: Counts) -> Iterator[Metric]:
    """Those of secondary networks. Pods that share a write are fewer writes than ADDs."""
    yield _counter("pool_writes", "How often an IPPool of a secondary network was written.", counts.writes)
    yield _counter(
        "pool_conflicts", "How often somebody else had written the IPPool meanwhile.", counts.conflicts
    )
    yield _counter(
        "pool_retries",
        "How often a round of ADDs and DELs of one IPPool had to be tried again.",
        counts.retries,
    )


def _count(state: NodeState, *states: State) -> int:
    return sum(state.counts.get(each, 0) for each in states)


def _gauge(name: str, sentence: str, value: float | None) -> Metric:
    """A gauge; without a value while it is not known, because unknown is not zero."""
    return GaugeMetricFamily(f"podtide_agent_{name}", sentence, value=None if value is None else float(value))


def _counter(name: str, sentence: str, value: int) -> Metric:
    return CounterMetricFamily(f"podtide_agent_{name}", sentence, value=value)
