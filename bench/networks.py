"""Secondary networks of a large cluster: one pod on every node, each with an interface in every one of ten networks.

The slices controller, leak repair and the agents are the real ones, on the embedded cluster and on virtual time: each call
takes as long as one to a busy API server, which works on so many at a time. So the seconds are the same on any machine;
only the processor time is this one's. `networks_one_lease` has the design that they replace, under the same conditions.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from time import process_time

from msgspec import Struct

from kubelet_deadline import Attachments
from network_fleet import AGENTS, CONTROLLER, NetworkFleet, network_text
from podtide.runtime import virtual_time

PART = "networks"
SIZES = (500, 1_000, 5_000)
NETWORKS = 10
AT_ONCE = 40
_SETTLING_SECONDS = 60.0
"""In which whatever is still to come of a change has come."""
_IDLE_SECONDS = 600.0


class Watched(Struct, frozen=True):
    """The bytes that events brought when a node came or went."""

    agents: int
    """All of them together."""
    controller: int
    lists: int
    """Of the controller's, those of NodeSlicePools."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What a cluster of one size came to."""

    nodes: int
    cut_seconds: float
    add_seconds: float
    pods: Attachments
    writes: int
    reads: int
    burst_seconds: float
    burst_writes: int
    join: Watched
    leave: Watched
    idle_renewals: int
    """Writes of the leader's Lease in ten minutes."""
    idle_writes: Counter[str]
    """All others, by kind."""
    cpu_seconds: float

    @property
    def writes_per_add(self) -> float:
        """Of all agents together."""
        return self.writes / self.pods.answered


def measure() -> Iterator[tuple[str, str]]:
    """Every size, and how the largest compares with the smallest."""
    outcomes = []
    for nodes in SIZES:
        outcomes.append(outcome := virtual_time.run(_run(nodes)))
        yield from _told(outcome)
    smallest, largest = outcomes[0], outcomes[-1]
    growth = largest.writes_per_add / smallest.writes_per_add
    yield f"writes per ADD, {largest.nodes:,} nodes : {smallest.nodes:,} nodes", f"{growth:.2f}"


async def _run(nodes: int) -> Outcome:
    """All there is to measure of one size."""
    cpu = process_time()
    names = [f"node-{number:04}" for number in range(nodes)]
    fleet = NetworkFleet(
        [
            network_text(f"network-{number}", range=f"10.{8 * number}.0.0/13", node_slice_size="/26")
            for number in range(NETWORKS)
        ]
    )  # each is cut into 8,192 slices of 62 addresses
    traffic = fleet.traffic
    cut_seconds = await _timed(fleet, lambda: fleet.open(names))
    traffic.clear()
    pods = [fleet.add_pod(node, f"pod-of-{node}", NETWORKS) for node in names]
    began = fleet.clock.monotonic()
    attached = await asyncio.gather(*pods)
    add_seconds = fleet.clock.monotonic() - began
    writes, reads = traffic.writes(AGENTS).total(), traffic.reads(AGENTS).total()
    traffic.clear()
    burst = [fleet.add_pod(names[0], f"burst-{number}", networks=1) for number in range(AT_ONCE)]
    burst_seconds = await _timed(fleet, lambda: asyncio.gather(*burst))
    burst_writes = traffic.writes(AGENTS).total()
    join = await _watched(fleet, lambda: fleet.join("node-late"), nodes + 1)
    leave = await _watched(fleet, lambda: fleet.leave(names[1]), nodes)
    traffic.clear()
    await asyncio.sleep(_IDLE_SECONDS)
    idle = traffic.writes(CONTROLLER)
    renewals = idle.pop("Lease", 0)
    idle += traffic.writes(AGENTS)
    await fleet.close()
    return Outcome(
        nodes=nodes,
        cut_seconds=cut_seconds,
        add_seconds=add_seconds,
        pods=Attachments(attached),
        writes=writes,
        reads=reads,
        burst_seconds=burst_seconds,
        burst_writes=burst_writes,
        join=join,
        leave=leave,
        idle_renewals=renewals,
        idle_writes=idle,
        cpu_seconds=process_time() - cpu,
    )


async def _timed(fleet: NetworkFleet, act: Callable[[], Awaitable[object]]) -> float:
    began = fleet.clock.monotonic()
    await act()
    return fleet.clock.monotonic() - began


async def _watched(fleet: NetworkFleet, change: Callable[[], Awaitable[None]], nodes: int) -> Watched:
    """What a change brings to those who watch, until every node there then has its pools and nobody else has."""
    fleet.traffic.clear()
    await change()
    await fleet.until_pools(nodes, look_every_seconds=_SETTLING_SECONDS)
    await asyncio.sleep(_SETTLING_SECONDS)
    controller = fleet.traffic.watched_by(CONTROLLER)
    return Watched(fleet.traffic.watched_by(AGENTS).total(), controller.total(), controller["NodeSlicePool"])


def _told(outcome: Outcome) -> Iterator[tuple[str, str]]:
    size = f"{outcome.nodes:,} nodes, {NETWORKS} networks"
    pods = outcome.pods
    yield f"{size}: slices and pools made", f"{outcome.cut_seconds:.0f} s"
    yield f"{size}: {pods.answered:,} addresses for one pod on each", f"{outcome.add_seconds:.1f} s"
    yield f"{size}: ADDs without an answer in time", f"{pods.unanswered:,}"
    yield f"{size}: API writes, reads", f"{outcome.writes:,}, {outcome.reads:,}"
    yield f"{size}: writes per ADD", f"{outcome.writes_per_add:.2f}"
    yield f"{size}: ADD, p99", f"{pods.add_seconds(0.99) * 1e3:.0f} ms"
    yield (
        f"{size}: {AT_ONCE} ADDs at once on one node",
        f"{outcome.burst_seconds * 1e3:.0f} ms, {outcome.burst_writes} writes",
    )
    for what, watched in (("joins", outcome.join), ("is lost", outcome.leave)):
        yield f"{size}: watched when a node {what}, by all agents", f"{watched.agents:,} B"
        yield (
            f"{size}: watched when a node {what}, by the controller",
            f"{watched.controller / 1e3:,.0f} kB ({watched.lists / 1e3:,.0f} lists)",
        )
    yield f"{size}: writes of the leader's Lease in ten idle minutes", f"{outcome.idle_renewals}"
    others = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.idle_writes.items()))
    yield f"{size}: all other writes in ten idle minutes, by kind", others or "none"
    yield f"{size}: processor time of all of it, in one process", f"{outcome.cpu_seconds:.0f} s"
