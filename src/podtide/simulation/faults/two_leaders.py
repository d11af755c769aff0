"""Leaders that do not know that they were replaced."""

import asyncio
from random import Random

from podtide.cluster.port import NotFound
from podtide.controller.program import LEASE
from podtide.resources.lease import Lease
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_SHORTEST_SECONDS = 10.0
_LONGEST_SECONDS = 60.0


class StalledLeader(Mishap):
    """The leader gets no processor for a while: what it was about to write goes out when another leads already."""

    name = "stalled-leader"
    every_seconds = 100.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Hold its requests back, and let them go later."""
        leader = await _leader(scene)
        if not leader or leader in scene.conditions.stalls:
            return ""
        over = scene.conditions.stalls[leader] = asyncio.Event()

        async def go_on() -> None:
            del scene.conditions.stalls[leader]
            over.set()

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), go_on)
        return leader


class CutOffLeader(Mishap):
    """The leader cannot renew its Lease for a while, though all else gets through."""

    name = "cut-off-leader"
    every_seconds = 100.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Leave what it asks of its Lease without an answer."""
        leader = await _leader(scene)
        if not leader or leader in scene.conditions.silenced:
            return ""
        scene.conditions.silenced[leader] = Lease

        async def hear_again() -> None:
            del scene.conditions.silenced[leader]

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), hear_again)
        return leader


async def _leader(scene: Scene) -> str:
    """Who leads, as far as the Lease tells; "" for nobody."""
    try:
        lease = await scene.world.cluster.get(Lease, LEASE.name, LEASE.namespace)
    except NotFound:
        return ""
    return lease.spec.holder_identity or ""
