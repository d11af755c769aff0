"""A thousand nodes on a real API server, from a request to its answer, beside what the API server takes by itself.

The agents are played by writers of this process, which write requests as agents do; allocator and controller are
processes. A request and its answer are two writes. As many writers as there were then write the same two to objects of
which podtide knows nothing, as fast as they are answered: what podtide adds is the ratio. Both take turns, part by part
of the nodes, so that whatever else the machine does meanwhile befalls both.
"""

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from pathlib import Path
from time import perf_counter

sys.path.append(str(Path(__file__).parents[1] / "tools"))

from control_plane.binaries import binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from fleet_programs import FleetPrograms
from node_fleet import WRITERS, Fleet
from process_costs import peak_memory_bytes

PART = "kubernetes"
NODES = 1_000
TURNS = 5
WRITES_PER_NODE = 2


def measure() -> Iterator[tuple[str, str]]:
    """Nodes that join, requests that are answered, and the same writes without podtide."""
    try:
        found = binaries()
    except CannotBuild as reason:
        yield f"kube-apiserver: not measured, {reason}", "-"
        return
    with ControlPlane(found) as control_plane, FleetPrograms(control_plane) as programs:
        yield from asyncio.run(_measure(control_plane.kubeconfig, programs))


async def _measure(kubeconfig: Path, programs: FleetPrograms) -> list[tuple[str, str]]:
    names = [f"node-{number}" for number in range(NODES)]
    answering = bare = 0.0
    async with Fleet.connected(kubeconfig) as fleet:
        joining = await _seconds(fleet.join(names))
        before = programs.cpu_seconds()
        for turn in range(TURNS):
            part = names[turn::TURNS]
            answering += await _seconds(fleet.request(part))
            await fleet.make_bare(part)
            bare += await _seconds(fleet.write_bare(part))
    after = programs.cpu_seconds()
    through, alone = (WRITES_PER_NODE * NODES / seconds for seconds in (answering, bare))
    memory = peak_memory_bytes(programs.controller_pid) / 1e6
    return [
        (f"{NODES:,} nodes, from Node to status with a primary", f"{NODES / joining:,.0f} nodes/s"),
        (f"{NODES:,} nodes, from request to status", f"{NODES / answering:,.0f} nodes/s"),
        ("of that, the controller", f"{after.controller - before.controller:.1f} CPU s"),
        ("of that, the allocator", f"{after.allocator - before.allocator:.1f} CPU s"),
        ("the controller's memory, at most", f"{memory:.0f} MB"),
        (f"kube-apiserver: the same writes bare, {WRITERS} at a time", f"{alone:,.0f} writes/s"),
        ("writes through podtide : bare writes", f"{through / alone:.2f}"),
    ]


async def _seconds(work: Awaitable[None]) -> float:
    begin = perf_counter()
    await work
    return perf_counter() - begin
