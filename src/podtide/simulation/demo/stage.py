"""What the demonstration is played on: a stage with a speed, a teller, and the controller's last decision.

Its stories are tested on virtual time and shown on the machine's.
"""

from collections.abc import Awaitable, Callable
from fractions import Fraction

from podtide.controller.counts import SubnetCounts
from podtide.controller.program import LEASE, Controller
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation import stage
from podtide.simulation.demo.scene import DemoScene, node_scene, subnet_scene
from podtide.simulation.demo.teller import Chapter, Teller
from podtide.simulation.nodes.pods import MANAGER
from podtide.simulation.world.world import World

PATIENCE_SECONDS = 90.0
"""How long to wait for a condition. Not scaled with the story's speed: machines do not get faster by it."""

_NOT_LOOKED_AT = SubnetCounts(
    capacity=0,
    reserved=0,
    containers=0,
    owed=0,
    exhausted=False,
    starved=False,
    batch=0,
    buffer=Fraction(0),
    top=0,
    unanswered=0,
)


class DemoStage(stage.Stage):
    """A stage with the names of its nodes, a speed and a teller."""

    def __init__(  # noqa: PLR0913 - whose world, who is told, and how it is played
        self,
        world: World,
        controller: Controller,
        teller: Teller,
        *,
        nodes: int,
        speed: float,
        seed: int,
        why: str = "podtide why",
        kubectl: str = "kubectl",
    ) -> None:
        super().__init__(world)
        self.teller = teller
        self.names = tuple(f"node-{number:0{len(str(nodes))}d}" for number in range(1, nodes + 1))
        self.why = why
        """The command that explains a pod of this cluster, without the pod's name."""
        self.kubectl = kubectl
        """kubectl with the flags for this cluster."""
        self.randomness = seeded_randomness(f"{seed}/story")
        self._controller = controller
        self._speed = speed

    # What is told

    def begin(self, title: str, words: str, command: str = "") -> None:
        """Begin a chapter, with a command that shows more of it."""
        self.teller.begin(Chapter(title, words, command))

    def say(self, words: str) -> None:
        """Tell a result."""
        self.teller.say(words)

    # What happens

    async def pause(self, seconds: float) -> None:
        """Let so many seconds of the story pass."""
        await self.world.pass_time(seconds / self._speed)

    async def until(self, holds: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds."""
        await self.world.until(holds, within=PATIENCE_SECONDS)

    # What is so

    @property
    def decided(self) -> SubnetCounts:
        """The subnet's counts and what is in force, as the controller last decided."""
        return self._controller.metrics.subnets.get(self.world.options.subnet, _NOT_LOOKED_AT)

    def is_exhausted(self) -> bool:
        """Whether the subnet is exhausted, as the controller last decided."""
        return self.decided.exhausted

    async def scene(self) -> DemoScene:
        """The present state of the subnet and the nodes."""
        options, settings = self.world.options, self.world.defaults.settings
        nodes = tuple(node_scene(machine) for machine in tuple(self.world.machines.values()))
        subnet = await self.world.allocator.get_subnet(options.network, options.subnet)
        thresholds = settings.lower_threshold, settings.upper_threshold
        return DemoScene(subnet_scene(subnet, self.decided, nodes, thresholds), nodes)


async def ship_released_lease(world: World) -> None:
    """Create the leader's Lease without a holder, as a chart would, so that the first controller need not wait."""
    lease = Lease(
        metadata=ObjectMeta(name=LEASE.name, namespace=LEASE.namespace),
        spec=LeaseSpec(lease_duration_seconds=1),
    )
    await world.cluster.create(lease, manager=MANAGER)
