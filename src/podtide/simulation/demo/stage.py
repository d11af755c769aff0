"""What a story is played on: a world, and short ways to let things happen in it.

It stands on virtual time as well as on the machine's: stories are tested on the first and shown on the second.
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

from podtide.cluster.port import NotFound
from podtide.controller.counts import SubnetCounts
from podtide.controller.program import LEASE, Controller
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.demo.scene import Scene, node_scene, subnet_scene
from podtide.simulation.demo.teller import Chapter, Teller
from podtide.simulation.pods import MANAGER, NAMESPACE
from podtide.simulation.trace import ClusterWrite, PluginCall
from podtide.simulation.world import World

PATIENCE_SECONDS = 90.0
"""For what must come to pass. Not scaled with the story's speed: machines do not get faster by it."""

_NOT_LOOKED_AT = SubnetCounts(
    capacity=0, reserved=0, containers=0, owed=0, exhausted=False, starved=False, batch=0, buffer=Fraction(0)
)


class Stage:
    """The story's world, its nodes' names and its pace."""

    def __init__(  # noqa: PLR0913 - whose world, who is told, and how it is played
        self, world: World, controller: Controller, teller: Teller, *, nodes: int, speed: float, seed: int
    ) -> None:
        self.world = world
        self.teller = teller
        self.names = tuple(f"node-{number:0{len(str(nodes))}d}" for number in range(1, nodes + 1))
        self.randomness = seeded_randomness(f"{seed}/story")
        self.pods: dict[str, list[str]] = {name: [] for name in self.names}
        """The names of each node's pods, oldest first."""
        self._controller = controller
        self._speed = speed

    # What is told

    def begin(self, title: str, words: str) -> None:
        """A chapter begins."""
        self.teller.begin(Chapter(title, words))

    def say(self, words: str) -> None:
        """What has come of something."""
        self.teller.say(words)

    # What happens

    async def pause(self, seconds: float) -> None:
        """Let the story's time pass."""
        await self.world.pass_time(seconds / self._speed)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until this holds."""
        await self.world.until(holds, within=PATIENCE_SECONDS)

    async def add_pods(self, node: str, count: int = 1) -> list[str]:
        """New pods are bound to a node."""
        names = await self.world.workload.add_pods(node, count)
        self.pods[node] += names
        return names

    async def remove_pods(self, node: str, count: int = 1) -> None:
        """The node's newest pods go."""
        for _ in range(min(count, len(self.pods[node]))):
            with suppress(NotFound):
                await self.world.workload.remove_pod(self.pods[node].pop())

    async def remove_node(self, name: str) -> None:
        """The node leaves, and its pods with it."""
        await self.world.remove_node(name)
        self.pods[name].clear()

    # What is so

    @property
    def pod_count(self) -> int:
        """Pods there should be."""
        return sum(map(len, self.pods.values()))

    def all_served(self) -> bool:
        """Whether every pod has its address, and none has one that should be gone."""
        wanted = {f"{NAMESPACE}/{name}" for names in self.pods.values() for name in names}
        served = {
            sandbox.pod
            for machine in self.world.machines.values()
            for sandbox in machine.kubelet.sandboxes()
            if sandbox.addresses
        }
        return served == wanted

    @property
    def decided(self) -> SubnetCounts:
        """The subnet as the controller last saw and decided."""
        return self._controller.metrics.subnets.get(self.world.options.subnet, _NOT_LOOKED_AT)

    def is_exhausted(self) -> bool:
        """Whether the controller holds the subnet for exhausted."""
        return self.decided.exhausted

    async def reserved(self) -> int:
        """R, this instant."""
        options = self.world.options
        return (await self.world.allocator.get_subnet(options.network, options.subnet)).reserved

    async def scene(self) -> Scene:
        """How everything stands."""
        options, settings = self.world.options, self.world.customs.settings
        nodes = tuple(node_scene(machine) for machine in tuple(self.world.machines.values()))
        subnet = await self.world.allocator.get_subnet(options.network, options.subnet)
        thresholds = settings.lower_threshold, settings.upper_threshold
        return Scene(subnet_scene(subnet, self.decided, nodes, thresholds), nodes)

    # What was done since some point of the story

    @property
    def now(self) -> int:
        """A point of the story, to count from."""
        return len(self.world.trace.entries)

    def requests_since(self, point: int, node: str = "") -> list[int]:
        """What agents asked for, in order."""
        return [
            entry.item.spec.requested_ip_count
            for entry in self.world.trace.entries[point:]
            if isinstance(entry, ClusterWrite)
            and entry.verb == "apply"
            and isinstance(entry.item, NodeNetworkConfig)
            and node in {"", entry.name}
        ]

    def given_back_since(self, point: int) -> int:
        """How many addresses agents named for release."""
        return len(
            {
                name
                for entry in self.world.trace.entries[point:]
                if isinstance(entry, ClusterWrite) and isinstance(entry.item, NodeNetworkConfig)
                for name in entry.item.spec.ips_not_in_use
            }
        )

    def adds_since(self, point: int) -> list[PluginCall]:
        """Calls of the plugin for an address, in order."""
        entries = self.world.trace.entries[point:]
        return [entry for entry in entries if isinstance(entry, PluginCall) and entry.verb == "ADD"]


async def ship_released_lease(world: World) -> None:
    """Make the leader's Lease as a chart would: free to take, so that the first controller need not wait it out."""
    lease = Lease(
        metadata=ObjectMeta(name=LEASE.name, namespace=LEASE.namespace),
        spec=LeaseSpec(lease_duration_seconds=1),
    )
    await world.cluster.create(lease, manager=MANAGER)
