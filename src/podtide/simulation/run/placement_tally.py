"""How well pods are placed in a run: those that hang on a node without an address, and those that wait for a node.

Pods that were bound a moment ago are in flight: they count as hanging when they had no address at two looks in a row.
"""

import asyncio
from collections.abc import Sequence
from typing import NoReturn

from msgspec import Struct

from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.pods import is_terminal
from podtide.simulation.trace import ClusterWrite, Entry
from podtide.simulation.world.world import World

_LOOK_EVERY_SECONDS = 5.0


class PlacementCounts(Struct, frozen=True, kw_only=True):
    """What a run with a scheduler came to."""

    bound: int
    """How often a pod was bound to a node."""
    most_hanging: int
    """The most pods at one time that were bound to a node and had no address."""
    most_hanging_beyond_one: int
    """The most of them beyond one for each node."""
    most_unplaced: int
    """The most pods at one time that fitted on no node."""
    node_writes: int
    """How often a controller wrote a Node."""


class PlacementTally:
    """Looks at the pods of all worlds from time to time."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self._worlds = worlds
        self._hanging = self._beyond = self._unplaced = self._writes = 0
        self._before: set[str] = set()

    def hear(self, entry: Entry) -> None:
        """Count a write of a Node by a controller: no other program of podtide writes any."""
        if isinstance(entry, ClusterWrite) and entry.kind == Node.api.kind:
            self._writes += 1

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            await self._look()

    async def _look(self) -> None:
        without, nodes = set[str](), 0
        for world in self._worlds:
            nodes += len(world.machines)
            without |= {full_name(world.name, pod.metadata.uid) for pod in await pods_without_address(world)}
        hanging = len(without & self._before)
        self._before = without
        self._hanging = max(self._hanging, hanging)
        self._beyond = max(self._beyond, hanging - nodes)
        self._unplaced = max(
            self._unplaced, sum(len(world.scheduler.reasons) for world in self._worlds if world.scheduler)
        )

    def counts(self) -> PlacementCounts:
        """What it has counted so far."""
        return PlacementCounts(
            bound=sum(world.scheduler.bound for world in self._worlds if world.scheduler),
            most_hanging=self._hanging,
            most_hanging_beyond_one=self._beyond,
            most_unplaced=self._unplaced,
            node_writes=self._writes,
        )


async def pods_without_address(world: World) -> list[Pod]:
    """The pods that are bound to a node and have no address, though they have not ended."""
    served = {
        sandbox.pod
        for machine in world.machines.values()
        for sandbox in machine.kubelet.sandboxes()
        if sandbox.addresses
    }
    return [
        pod
        for pod in (await world.cluster.list(Pod)).items
        if pod.spec.node_name
        and not is_terminal(pod)
        and not pod.metadata.deletion_timestamp
        and str(pod.key) not in served
    ]
