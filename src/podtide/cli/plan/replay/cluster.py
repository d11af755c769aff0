"""The cluster that a trace is replayed on: what was asked for, and what follows from the trace where nothing was."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.layout import SubnetLayout, choose_gateways
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.runtime.durations import format_duration
from podtide.simulation.replay.pod_changes import check_room
from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.story_replay import StoryLoad
from podtide.simulation.replay.trace_replay import MOST_PODS_PER_NODE, TraceLoad
from podtide.simulation.scenario.reading import read_scenario

MOST_NODES = 5000
_PODS_PER_NODE = 30
_DAY_SECONDS = 86_400.0
_MOST_USUAL_SPEED = 60
_PREFIXES = range(28, 7, -1)
_HOUR_SECONDS = 3600


class ReplayCluster(Struct, frozen=True, kw_only=True):
    """What was asked for; None is what follows from the trace."""

    nodes: int | None
    subnet: str | None
    seed: int
    speed: float | None
    at_once: bool
    by_node: bool


class ReplayAbout(Struct, frozen=True, kw_only=True):
    """What was replayed, for people and for programs."""

    title: str
    notes: tuple[str, ...]
    """A sentence each: what was replayed on what, and what was odd in the file."""
    capacity: int | None = None
    """Of the subnet."""
    subnet: str = ""
    nodes: int | None = None
    speed: float = 1.0
    seed: int | None = None


def trace_load(trace: PodTrace, asked: ReplayCluster, largest_batch: int) -> TraceLoad:
    """The trace with the cluster that it is replayed on."""
    nodes = _nodes(trace, asked)
    check_room(trace, nodes, MOST_PODS_PER_NODE)
    subnet = asked.subnet or _smallest_subnet(trace.peak, len(nodes), largest_batch)
    if (capacity := capacity_of(subnet)) < len(nodes):
        raise InvalidInput(
            f"subnet {subnet} has {capacity} addresses, and {len(nodes)} nodes need one each for themselves: give a larger one"
        )
    return TraceLoad(
        trace=trace,
        nodes=nodes,
        subnet=subnet,
        seed=asked.seed,
        speed=asked.speed or usual_speed(trace.seconds),
        at_once=asked.at_once,
    )


def capacity_of(cidr: str) -> int:
    """How many addresses of a CIDR can be reserved."""
    return SubnetLayout((cidr,), choose_gateways((cidr,))).capacity


def usual_speed(seconds: float) -> float:
    """The speed for a trace of that length: a longer one than a day is played in a day, but at most sixty times as fast."""
    return float(min(max(1, int(seconds / _DAY_SECONDS)), _MOST_USUAL_SPEED))


def described_trace(file: Path, load: TraceLoad) -> ReplayAbout:
    """What is replayed of a trace."""
    trace = load.trace
    rows = (
        f"{len(trace.times)} rows, {format_duration(trace.step_seconds)} apart, {_range(min(trace.totals), trace.peak)} pods on "
        f"{len(load.nodes)} {'node' if len(load.nodes) == 1 else 'nodes'}"
    )
    played = _minutes(_HOUR_SECONDS / load.speed)
    speed = f"an hour of it is played in {played} (--speed {load.speed:g}); " if load.speed != 1 else ""
    capacity = capacity_of(load.subnet)
    return ReplayAbout(
        title=file.name,
        notes=(rows, f"subnet {load.subnet}, {capacity} addresses", f"{speed}seed {load.seed}", *trace.notes),
        capacity=capacity,
        subnet=load.subnet,
        nodes=len(load.nodes),
        speed=load.speed,
        seed=load.seed,
    )


def _range(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes} min {rest} s" if minutes and rest else f"{minutes} min" if minutes else f"{seconds:.3g} s"
    )


def described_story(load: StoryLoad) -> ReplayAbout:
    """What is replayed of a story."""
    scenario = read_scenario(load.file)
    subnets = ", ".join(scenario.subnets.values())
    only = next(iter(scenario.subnets.values())) if len(scenario.subnets) == 1 else ""
    nodes = sum(map(len, scenario.clusters.values()))
    return ReplayAbout(
        title=scenario.title,
        notes=(f"{nodes} {'node' if nodes == 1 else 'nodes'} at the start, subnet {subnets}",),
        capacity=capacity_of(only) if only else None,
        subnet=only,
        nodes=nodes,
    )


def _nodes(trace: PodTrace, asked: ReplayCluster) -> tuple[str, ...]:
    if asked.by_node:
        if asked.nodes is not None:
            raise InvalidInput("--nodes does not go with --by-node: the columns are the nodes")
        if len(trace.columns) > MOST_NODES:
            raise InvalidInput(
                f"{len(trace.columns)} nodes are too many to replay: give {MOST_NODES} or fewer"
            )
        return trace.columns
    count = max(1, ceil(trace.peak / _PODS_PER_NODE)) if asked.nodes is None else asked.nodes
    if not 1 <= count <= MOST_NODES:
        raise InvalidInput(f"{count} nodes cannot be replayed: give --nodes, from 1 to {MOST_NODES}")
    return tuple(_names(count))


def _names(count: int) -> Iterator[str]:
    width = len(str(count))
    return (f"node-{number:0{width}}" for number in range(1, count + 1))


def _smallest_subnet(peak: int, nodes: int, batch: int) -> str:
    """The smallest subnet in which the batch has room at the peak, with pods evenly spread."""
    least = nodes * (1 + decide_request(ceil(peak / nodes), Scaler(batch=batch), 1).request)
    for prefix in _PREFIXES:
        cidr = f"10.0.0.0/{prefix}"
        if least < Thresholds().lower * capacity_of(cidr):
            return cidr
    raise InvalidInput(
        f"{peak} pods need more addresses than 10.0.0.0/8 has: give a --subnet, or a smaller --scale"
    )
