"""Every metric, from the programs' registries: each is scraped once, with one subnet, so that labels show."""

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import cast

from prometheus_client.parser import text_string_to_metric_families

from podtide.agent.api.metrics import AgentMetrics
from podtide.agent.port import Addresses, NodeState
from podtide.allocator.service.metrics import AllocatorMetrics
from podtide.allocator.subnets import Subnet
from podtide.controller.counts import ControllerCounts, RunOutCounts, SliceCounts, SubnetCounts
from podtide.controller.metrics import ControllerMetrics
from podtide.core.pool.states import State
from podtide.core.subnet.scaler import Scaler
from reference.markdown import code, described, table

_BUCKETS = "le"
_PROCESS = "process_"


def page() -> Iterator[str]:
    """The page of metrics."""
    yield "# Metrics"
    yield "What `/metrics` of each program has, beside the usual `process_` metrics. [Runbooks](../runbooks.md) says which alerts are made of them."
    yield ""
    for program, text in (("allocator", _allocator()), ("controller", _controller()), ("agent", _agent())):
        yield f"## Of the {program}"
        yield ""
        yield from table(("Metric", "Type", "Labels", "What it is"), _rows(text.decode()))


def _rows(text: str) -> Iterator[tuple[str, str, str, str]]:
    for family in text_string_to_metric_families(text):
        if family.name.startswith(_PROCESS) or family.name.endswith("_created"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {_BUCKETS}
        shown = ", ".join(map(code, sorted(labels)))
        yield code(name), family.type, shown, described(family.documentation, name)


def _allocator() -> bytes:
    metrics = AllocatorMetrics()
    metrics.count("GET", "/", "ok", 0.0)
    subnet = Subnet(
        network="network",
        name="subnet",
        cidrs=(),
        gateways=(),
        keep_back=(),
        keep_back_first=0,
        capacity=0,
        reserved=0,
        containers=0,
        owed=0,
    )
    metrics.show_subnets([subnet])
    return metrics.render()


def _controller() -> bytes:
    counts = ControllerCounts(allocator_reachable=True)
    counts.allocator_calls["set_wish", "ok"] += 1
    counts.writes["Node"] += 1
    counts.subnets["subnet"] = SubnetCounts(
        capacity=0,
        reserved=0,
        containers=0,
        owed=0,
        exhausted=False,
        starved=False,
        batch=1,
        buffer=Fraction(0),
        top=1,
        unanswered=0,
    )
    day = date(2026, 1, 1)
    counts.run_outs["subnet"] = RunOutCounts(day, day, day)
    counts.slices["pool"] = SliceCounts(assigned=0, total=0, waiting=0)
    return ControllerMetrics(counts).render()


def _agent() -> bytes:
    state = NodeState(
        synced=True,
        in_contact=True,
        counts=dict.fromkeys(State, 0),
        requested=0,
        demand=0,
        scaler=Scaler(batch=1, buffer=Fraction(0), max_ips=1),
        subnet="subnet",
        subnet_cidr="10.0.0.0/8",
    )

    class Stated:
        """A node of which only the state is read."""

        def state(self) -> NodeState:
            return state

    metrics = AgentMetrics(cast("Addresses", Stated()))
    metrics.count("ADD", "ok", 0.0)
    return metrics.render()
