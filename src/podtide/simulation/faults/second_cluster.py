"""A controller that acts for a cluster's name, and sees another cluster."""

from random import Random

from podtide.cluster.embedded import EmbeddedCluster
from podtide.controller.program import Controller
from podtide.resources.base import ObjectMeta
from podtide.resources.node import Node
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene

_SHORTEST_SECONDS = 10.0
_LONGEST_SECONDS = 120.0


class SecondCluster(Mishap):
    """Another cluster is set up under this one's name, or this one's controller is given a wrong kubeconfig.

    It looks at an API server that knows none of this cluster's Nodes, but maybe some of the same names.
    """

    name = "second-cluster"
    every_seconds = 150.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Start it, and stop it after a while."""
        world, number = scene.world, chance.getrandbits(32)
        if not await scene.allocator.knows(world.options.cluster):
            return ""  # whoever uses a name first has it
        elsewhere = EmbeddedCluster(clock=scene.clock, randomness=seeded_randomness(f"elsewhere {number}"))
        for name in sorted(world.machines)[: chance.randrange(3)]:
            await elsewhere.create(Node(metadata=ObjectMeta(name=name)), manager="kubelet")
        program = f"stranger {number}"
        line = world.record_allocator(program)
        stranger = Controller(
            elsewhere,
            line,
            world.options,
            settings=world.customs.settings,
            clock=scene.clock,
            randomness=seeded_randomness(program),
            log=world.log.bind(program=program),
        )
        world.programs.start(program, stranger.run_elected(program), line)

        async def stop() -> None:
            await world.programs.kill(program)
            elsewhere.close()

        scene.plan(chance.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS), stop)
        return f"under the name {world.options.cluster}"
