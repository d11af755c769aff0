"""Slices beside the one-lease design that they replace: the same pods, networks, API server and kubelets, in one run.

Both start one pod on every node at the same instant, each with an interface in every one of ten networks. The first has
the programs of podtide, with networks that are cut; the second a model of the program that takes one Lease for every ADD
of the cluster (`tools/one_lease_design.py`), with networks that are not.
"""

import asyncio
from collections.abc import Iterator

from msgspec import Struct

from busy_api_server import CALL_SECONDS, BusyApiServer
from kubelet_deadline import KUBELET_SECONDS, Attached, Attachments, attach
from network_fleet import AGENTS, NetworkFleet, network_text
from one_lease_design import OneLease
from podtide.cni.ipam_config import parse_config
from podtide.core.networks.allocations import Allocation
from podtide.networks.network import network_of
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness

PART = "networks"
SIZES = ((32, CALL_SECONDS), (128, CALL_SECONDS), (256, CALL_SECONDS), (256, 2 * CALL_SECONDS))
"""Nodes up to the number at which the design paper saw kubelets give up, and how long the API server takes for a call."""
NETWORKS = 10
_RANGES = [f"10.{8 * number}.0.0/13" for number in range(NETWORKS)]


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one pod on every node."""

    pods: Attachments
    seconds: float
    """Until the last pod was ready, or given up."""
    reads: int
    writes: int


def measure() -> Iterator[tuple[str, str]]:
    """Every size, both designs side by side."""
    for nodes, call_seconds in SIZES:
        sliced = virtual_time.run(_with_slices(nodes, call_seconds))
        queued = virtual_time.run(_with_one_lease(nodes, call_seconds))
        yield from _told(
            f"{nodes} nodes, {NETWORKS} networks, calls of {call_seconds * 1e3:.0f} ms", sliced, queued
        )


async def _with_slices(nodes: int, call_seconds: float) -> Outcome:
    texts = [
        network_text(f"network-{number}", range=range_, node_slice_size="/26")
        for number, range_ in enumerate(_RANGES)
    ]
    fleet = NetworkFleet(texts, call_seconds)
    names = [f"node-{number:04}" for number in range(nodes)]
    await fleet.open(names)
    fleet.traffic.clear()
    began = fleet.clock.monotonic()
    pods = await asyncio.gather(*(fleet.add_pod(node, f"pod-of-{node}", NETWORKS) for node in names))
    outcome = Outcome(
        pods=Attachments(pods),
        seconds=fleet.clock.monotonic() - began,
        reads=fleet.traffic.reads(AGENTS).total(),
        writes=fleet.traffic.writes(AGENTS).total(),
    )
    await fleet.close()
    return outcome


async def _with_one_lease(nodes: int, call_seconds: float) -> Outcome:
    server, clock = BusyApiServer(call_seconds), LoopClock()
    networks = [
        network_of(parse_config(network_text(f"network-{number}", range=range_)))
        for number, range_ in enumerate(_RANGES)
    ]
    ranges = [network.ranges[0] for network in networks if network is not None]

    async def start(node: str) -> Attached:
        plugin = OneLease(server.line(AGENTS), clock, seeded_randomness(node))

        async def add(number: int) -> None:
            asking = Allocation(f"sandbox-{node}", f"default/pod-of-{node}", f"net{number}")
            await plugin.add(ranges[number], asking)

        return await attach(add, NETWORKS, clock)

    pods = await asyncio.gather(*(start(f"node-{number:04}") for number in range(nodes)))
    outcome = Outcome(
        pods=Attachments(pods),
        seconds=clock.monotonic(),
        reads=server.traffic.reads(AGENTS).total(),
        writes=server.traffic.writes(AGENTS).total(),
    )
    server.cluster.close()
    return outcome


def _told(size: str, sliced: Outcome, queued: Outcome) -> Iterator[tuple[str, str]]:
    both = (sliced, queued)
    yield f"{size}: slices beside one lease", ""
    yield f"  pods ready before the kubelet gives up, after {KUBELET_SECONDS:.0f} s", _pair(map(_ready, both))
    yield "  pods that the kubelet itself gave up", _pair(f"{each.pods.given_up_by_kubelet}" for each in both)
    yield "  ADDs without an answer by then", _pair(f"{each.pods.unanswered:,}" for each in both)
    yield "  until the last pod was ready, or given up", _pair(f"{each.seconds:.1f} s" for each in both)
    for part in (0.5, 0.99):
        took = [each.pods.add_seconds(part) for each in both]
        yield (
            f"  ADD, p{part * 100:.0f}, without an answer: its deadline",
            _pair(f"{seconds:.2f} s" for seconds in took),
        )
        yield f"  ADD, p{part * 100:.0f}, one lease : slices", f"{took[1] / took[0]:,.0f}"
    yield "  API reads per answered ADD", _pair(f"{each.reads / each.pods.answered:.2f}" for each in both)
    yield "  API writes per answered ADD", _pair(f"{each.writes / each.pods.answered:.2f}" for each in both)


def _ready(outcome: Outcome) -> str:
    return f"{outcome.pods.ready} of {len(outcome.pods.pods)}"


def _pair(figures: Iterator[str]) -> str:
    return " | ".join(figures)
