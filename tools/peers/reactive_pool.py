"""The reactive pool of Azure CNS beside podtide: its way to the targets that CNS itself was recorded to compute, and a burst.

CNS needs Azure's fabric and cannot be run here. What was recorded of it is where a pool has to end (tests/recorded); the
steps that lead there are the rules of `core/plan/reactive_pool.py`, which tests hold to come to rest at these targets.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from comparison.contestants import PODTIDE
from comparison.loads import BURST
from comparison.trial import TrialOutcome, compare
from podtide.core.exact import exact
from podtide.core.plan.reactive_pool import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.simulation.strategies import REACTIVE

_RECORDED = Path(__file__).parents[2] / "tests" / "recorded" / "cns_targets.json"
_NO_LIMIT = 10**6
_LEAST_BUFFER = Fraction(1, 100)


def recorded_targets() -> Iterator[tuple[int, Scaler, int]]:
    """Demand, parameters and CNS' own target, of those that both versions of CNS come to."""
    rows: list[Any] = json.loads(_RECORDED.read_text())["rows"]
    for demand, batch, buffer, target, _ in rows:
        scaler = Scaler(batch, exact(buffer), _NO_LIMIT)
        if _LEAST_BUFFER <= scaler.buffer <= 1 and scaler.minimum_free.denominator == 1:
            yield demand, scaler, target


def reactive_requests(demand: int, scaler: Scaler) -> list[int]:
    """The requests of a reactive pool from nothing to rest, when so many pods come at once; each waits for its grant."""
    requests: list[int] = []
    held = 0
    while True:
        assigned = min(held, demand)
        request = decide_reactive_request(ReactivePool(held, held, assigned), scaler)
        if request == held:
            return requests
        requests.append(request)
        held = request


def table() -> Iterator[str]:
    """The comparison, in Markdown."""
    targets = list(recorded_targets())
    ways = [reactive_requests(demand, scaler) for demand, scaler, _ in targets]
    there = sum(way[-1:] == [target] for way, (_, _, target) in zip(ways, targets, strict=True))
    ours = sum(decide_request(demand, scaler, 0).request == target for demand, scaler, target in targets)
    steps = [len(way) for way in ways]
    podtide, reactive = compare(PODTIDE, BURST), compare(REACTIVE, BURST)
    yield "| a node's pool | podtide | reactive, as Azure CNS |"
    yield "|---|---|---|"
    yield f"| of {len(targets)} targets that CNS was recorded to compute, reached | {ours} | {there} |"
    yield f"| requests, one after the other, to reach one: median, most | 1, 1 | {median(steps):.0f}, {max(steps)} |"
    for label, told in (
        ("a burst of 35 pods on a node: requests written", lambda outcome: str(outcome.requests)),
        ("a burst of 35 pods: ADDs that failed", lambda outcome: str(outcome.failed_adds)),
        ("a burst of 35 pods: until the last pod has its address", _ready),
    ):
        yield f"| {label} | {told(podtide)} | {told(reactive)} |"


def _ready(outcome: TrialOutcome) -> str:
    return "never" if outcome.ready_seconds is None else f"{outcome.ready_seconds:.1f} virtual s"
