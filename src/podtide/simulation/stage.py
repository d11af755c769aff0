"""What stories are played on: a world, the pods on its nodes, and short ways to let things happen and to ask what is so.

The demonstration and the scenario files both tell theirs by these. It stands on virtual time as well as on the
machine's.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from podtide.cluster.port import NotFound
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.nodes.pods import NAMESPACE
from podtide.simulation.trace import ClusterWrite, Entry, PluginCall
from podtide.simulation.world.world import World


class Stage:
    """A world whose pods are known by their nodes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pods: defaultdict[str, list[str]] = defaultdict(list)
        """The names of each node's pods, oldest first."""

    # What happens

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

    async def reserved(self) -> int:
        """R, this instant."""
        options = self.world.options
        return (await self.world.allocator.get_subnet(options.network, options.subnet)).reserved

    # What was done since some point of the story

    @property
    def now(self) -> int:
        """A point of the story, to count from."""
        return len(self.world.trace.entries)

    def writes_since(self, point: int) -> Iterator[ClusterWrite]:
        """What programs wrote, in order."""
        return self._writes(self.world.trace.entries[point:])

    def writes_until(self, point: int) -> Iterator[ClusterWrite]:
        """What they had written at that point, in order."""
        return self._writes(self.world.trace.entries[:point])

    def _writes(self, entries: Sequence[Entry]) -> Iterator[ClusterWrite]:
        return (
            entry for entry in entries if isinstance(entry, ClusterWrite) and entry.cluster == self.world.name
        )

    def requests_since(self, point: int, node: str = "") -> list[int]:
        """What agents asked for, in order."""
        return [
            write.item.spec.requested_ip_count
            for write in self.writes_since(point)
            if write.verb == "apply"
            and isinstance(write.item, NodeNetworkConfig)
            and node in {"", write.name}
        ]

    def given_back_since(self, point: int) -> int:
        """How many addresses agents named for release."""
        return len(
            {
                name
                for write in self.writes_since(point)
                if isinstance(write.item, NodeNetworkConfig)
                for name in write.item.spec.ips_not_in_use
            }
        )

    def adds_since(self, point: int) -> list[PluginCall]:
        """Calls of the plugin for an address, in order."""
        entries = self.world.trace.entries[point:]
        return [
            entry
            for entry in entries
            if isinstance(entry, PluginCall) and entry.verb == "ADD" and entry.cluster == self.world.name
        ]
