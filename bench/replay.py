"""How much of a trace is replayed in a minute, by the production programs: a month must not take a night."""

from collections.abc import Iterator
from time import process_time

from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.trace_replay import TraceLoad, replay_trace

PART = "plan"
HOURS = 24
NODES = 50
PODS = (1000, 1100, 1250, 1200, 1050, 950)
"""Over and over, an hour each."""


def measure() -> Iterator[tuple[str, str]]:
    """Replay a day of about 1,000 pods on 50 nodes as it was, and ten times as fast."""
    for speed in (1.0, 10.0):
        start = process_time()
        replay_trace("adaptive", 16, _load(speed), lambda _part: None)
        minutes = (process_time() - start) / 60
        yield (
            f"trace hours replayed in a CPU minute, {NODES} nodes, --speed {speed:g}",
            f"{HOURS / minutes:,.0f}",
        )


def _load(speed: float) -> TraceLoad:
    counts = tuple((PODS[hour % len(PODS)],) for hour in range(HOURS))
    return TraceLoad(
        trace=PodTrace(
            columns=("pods",),
            times=tuple(3600.0 * hour for hour in range(HOURS)),
            counts=counts,
            step_seconds=3600.0,
        ),
        nodes=tuple(f"node-{number}" for number in range(NODES)),
        subnet="10.0.0.0/20",
        speed=speed,
    )
