"""What placement costs a real API server with 5,000 nodes, beside what their kubelets write there anyway.

Kubelets are played by writers of this process: each writes the status of its Node, in the size that a kubelet writes it. A real one
does so every five minutes if nothing differs, and renews a Lease every ten seconds. Allocator and controller are processes.

    turned on     the controller is started again with `--placement`, and publishes on every Node
    all change    the subnet grows, so that every node has more room: the most that placement ever writes at once
    at rest       kubelets report once more, and nothing else happens: the controller hears of it and writes nothing
"""

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from pathlib import Path
from time import perf_counter

from msgspec import Struct

sys.path.append(str(Path(__file__).parents[1] / "tools"))

from control_plane.binaries import binaries
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild
from fleet_programs import FleetPrograms
from node_fleet import Fleet
from podtide.resources.metadata_keys import IPV4_RESOURCE
from process_costs import cpu_seconds

PART = "placement"
NODES = 5_000
CIDR, FURTHER = "10.0.0.0/15", "10.16.0.0/12"
"""Of the first every node has room for 16 pods beside those that it may have; with the second every node can have its maximum."""
KIND = "Node/status"
LOOK_EVERY_SECONDS = 0.5
AT_REST_SECONDS = 30.0


class _Costs(Struct, frozen=True):
    """What was written and spent: so far, or in one step."""

    at: float
    writes: int
    api_server: float
    controller: float

    def since(self, before: "_Costs") -> "_Costs":
        return _Costs(
            self.at - before.at,
            self.writes - before.writes,
            self.api_server - before.api_server,
            self.controller - before.controller,
        )


class _Programs(Struct, frozen=True):
    """What runs, and what it costs."""

    control_plane: ControlPlane
    podtide: FleetPrograms

    async def cost_of(self, work: Awaitable[None]) -> _Costs:
        before = self._costs()
        await work
        return self._costs().since(before)

    async def grow(self) -> None:
        """Grow the subnet, and wait until every Node says so."""
        written = self.podtide.writes(KIND)
        self.podtide.grow_subnet(FURTHER)
        await self.until_written(written + NODES)

    async def until_written(self, total: int) -> None:
        """Wait until the controller has written Nodes so often, and writes none any more."""
        last = -1
        while (now := self.podtide.writes(KIND)) < total or now != last:
            last = now
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def _costs(self) -> _Costs:
        return _Costs(
            perf_counter(),
            self.podtide.writes(KIND),
            cpu_seconds(self.control_plane.api_server_pid),
            self.podtide.cpu_seconds().controller,
        )


def measure() -> Iterator[tuple[str, str]]:
    """Placement turned on, changed everywhere, and at rest; and kubelets without and with it."""
    try:
        found = binaries()
    except CannotBuild as reason:
        yield f"placement on a real API server: not measured, {reason}", "-"
        return
    with ControlPlane(found) as control_plane, FleetPrograms(control_plane, CIDR) as programs:
        yield from asyncio.run(_measure(control_plane, programs))


async def _measure(control_plane: ControlPlane, podtide: FleetPrograms) -> list[tuple[str, str]]:
    names = [f"node-{number}" for number in range(NODES)]
    programs = _Programs(control_plane, podtide)
    async with Fleet.connected(control_plane.kubeconfig) as fleet:
        await fleet.join(names)
        await fleet.request(names)
        await fleet.report(names, "2026-01-01T00:00:00Z")
        without = await programs.cost_of(fleet.report(names, "2026-01-01T00:05:00Z"))
        begin = perf_counter()
        podtide.restart_controller("--placement")
        await programs.until_written(NODES)
        seconds, first_writes = perf_counter() - begin, podtide.writes(KIND)
        first = await fleet.published(IPV4_RESOURCE)
        with_it = await programs.cost_of(fleet.report(names, "2026-01-01T00:10:00Z"))
        at_rest = await programs.cost_of(asyncio.sleep(AT_REST_SECONDS))
        grown = await programs.cost_of(programs.grow())
        then = await fleet.published(IPV4_RESOURCE)
    assert all(first), "some Nodes publish nothing"
    assert all(then), "some Nodes publish nothing any more"
    return [
        (
            f"{NODES:,} nodes, turned on: they publish {_spread(first)}",
            f"{first_writes:,} writes, {seconds:.0f} s",
        ),
        (f"the subnet grows: they publish {_spread(then)}", f"{grown.writes:,} writes, {grown.at:.0f} s"),
        ("kube-apiserver for each of these writes", f"{grown.api_server / grown.writes * 1e3:.1f} ms"),
        ("the controller for each", f"{grown.controller / grown.writes * 1e3:.1f} ms"),
        ("kubelets report once", f"{NODES:,} writes, {without.at:.0f} s"),
        ("kube-apiserver for each of these reports", f"{without.api_server / NODES * 1e3:.1f} ms"),
        ("the controller for each, without placement", f"{without.controller / NODES * 1e3:.2f} ms"),
        ("the controller for each, with it", f"{with_it.controller / NODES * 1e3:.2f} ms"),
        ("Nodes that the controller writes because of them", f"{with_it.writes}"),
        (f"Nodes that it writes at rest, in {AT_REST_SECONDS:.0f} s", f"{at_rest.writes}"),
    ]


def _spread(numbers: list[str]) -> str:
    """Numbers of several nodes. They may differ where all of them together are limited (`core.subnet.placement`)."""
    least, most = min(map(int, numbers)), max(map(int, numbers))
    return f"{least}" if least == most else f"{least} to {most}"
