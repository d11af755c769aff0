"""Controllers that act although they must not: leaders that were replaced, and one that reads another cluster."""

import asyncio
from random import Random

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import NotFound
from podtide.controller.program import LEASE, Controller
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease
from podtide.resources.node import Node
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene

_SHORTEST_SECONDS = 10.0
_LONGEST_OF_LEADERS_SECONDS = 60.0
_LONGEST_OF_STRANGERS_SECONDS = 120.0


class StalledLeader(Mishap):
    """The leader gets no processor for a while: what it was about to write goes out when another leads already."""

    name = "stalled-leader"
    every_seconds = 100.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Hold its requests back, and let them go later."""
        leader = await _leader(scene)
        if not leader or leader in scene.conditions.stalls:
            return ""
        over = scene.conditions.stalls[leader] = asyncio.Event()

        async def go_on() -> None:
            del scene.conditions.stalls[leader]
            over.set()

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_OF_LEADERS_SECONDS), go_on)
        return leader


class CutOffLeader(Mishap):
    """The leader cannot renew its Lease for a while, though all its other requests are answered."""

    name = "cut-off-leader"
    every_seconds = 100.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Fail its requests about its Lease."""
        leader = await _leader(scene)
        if not leader or leader in scene.conditions.silenced:
            return ""
        scene.conditions.silenced[leader] = Lease

        async def hear_again() -> None:
            del scene.conditions.silenced[leader]

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_OF_LEADERS_SECONDS), hear_again)
        return leader


class SecondCluster(Mishap):
    """Another cluster is set up under this one's name, or this one's controller is given a wrong kubeconfig.

    Its API server has none of this cluster's Nodes, but maybe some of the same names.
    """

    name = "second-cluster"
    every_seconds = 150.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Start its controller, and stop it after a while."""
        world, number = scene.world, chance.getrandbits(32)
        if not await scene.allocator.knows(world.options.cluster):
            return ""  # the first cluster to use a name owns it
        elsewhere = EmbeddedCluster(clock=scene.clock, randomness=seeded_randomness(f"elsewhere {number}"))
        for name in sorted(world.machines)[: chance.randrange(3)]:
            await elsewhere.create(Node(metadata=ObjectMeta(name=name)), manager="kubelet")
        program = f"stranger {number}"
        line = world.record_allocator(program)
        stranger = Controller(
            elsewhere,
            line,
            world.options,
            runtime=Runtime(
                clock=scene.clock,
                randomness=seeded_randomness(program),
                log=world.log.bind(program=program),
                settings=world.defaults.settings,
            ),
        )
        world.programs.start(program, stranger.run_elected(program), line)

        async def stop() -> None:
            await world.programs.kill(program)
            elsewhere.close()

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_OF_STRANGERS_SECONDS), stop)
        return f"under the name {world.options.cluster}"


async def _leader(scene: FaultScene) -> str:
    """The holder of the Lease; "" if there is none."""
    try:
        lease = await scene.world.cluster.get(Lease, LEASE.name, LEASE.namespace)
    except NotFound:
        return ""
    return lease.spec.holder_identity or ""
