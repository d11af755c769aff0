"""What stories are played on: a world, the pods on its nodes, and short ways to change it and to query it.

The demonstration and the scenario files both use these. It works on virtual time as well as on the machine's.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from podtide.cluster.port import NotFound
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.nodes.pods import NAMESPACE
from podtide.simulation.trace import ClusterWrite, PluginCall
from podtide.simulation.world.world import World


class Stage:
    """A world with the names of the pods on each node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pods: defaultdict[str, list[str]] = defaultdict(list)
        """The names of each node's pods, oldest first."""

    # What happens

    async def add_pods(self, node: str, count: int = 1) -> list[str]:
        """Create pods bound to a node, and return their names."""
        names = await self.world.workload.add_pods(node, count)
        self.pods[node] += names
        return names

    async def remove_pods(self, node: str, count: int = 1) -> None:
        """Delete the node's newest pods."""
        for _ in range(min(count, len(self.pods[node]))):
            with suppress(NotFound):
                await self.world.workload.remove_pod(self.pods[node].pop())

    async def remove_node(self, name: str) -> None:
        """Remove the node and its pods."""
        await self.world.remove_node(name)
        self.pods[name].clear()

    # What is so

    @property
    def pod_count(self) -> int:
        """How many pods there should be."""
        return sum(map(len, self.pods.values()))

    def all_served(self) -> bool:
        """Whether every pod has its address, and no deleted pod has one."""
        wanted = {f"{NAMESPACE}/{name}" for names in self.pods.values() for name in names}
        served = {
            sandbox.pod
            for machine in self.world.machines.values()
            for sandbox in machine.kubelet.sandboxes()
            if sandbox.addresses
        }
        return served == wanted

    async def reserved(self) -> int:
        """R, the number of reserved addresses, at this instant."""
        options = self.world.options
        return (await self.world.allocator.get_subnet(options.network, options.subnet)).reserved

    # What was done since some point of the story

    @property
    def now(self) -> int:
        """The present point of the story, to count from."""
        return len(self.world.trace.entries)

    def writes_since(self, point: int) -> Iterator[ClusterWrite]:
        """The programs' writes after a point, in order."""
        return (
            entry
            for entry in self.world.trace.entries[point:]
            if isinstance(entry, ClusterWrite) and entry.cluster == self.world.name
        )

    def requests_since(self, point: int, node: str = "") -> list[int]:
        """The agents' requests after a point, in order."""
        return [
            write.item.spec.requested_ip_count
            for write in self.writes_since(point)
            if write.verb == "apply"
            and isinstance(write.item, NodeNetworkConfig)
            and node in {"", write.name}
        ]

    def given_back_since(self, point: int) -> int:
        """How many addresses agents named for release after a point."""
        return len(
            {
                name
                for write in self.writes_since(point)
                if isinstance(write.item, NodeNetworkConfig)
                for name in write.item.spec.ips_not_in_use
            }
        )

    def adds_since(self, point: int) -> list[PluginCall]:
        """The calls of ADD after a point, in order."""
        entries = self.world.trace.entries[point:]
        return [
            entry
            for entry in entries
            if isinstance(entry, PluginCall) and entry.verb == "ADD" and entry.cluster == self.world.name
        ]
