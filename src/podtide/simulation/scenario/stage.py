"""What a scenario file is played on: a stage for each of its clusters, and what only a scenario's steps need.

A single cluster's nodes are named `node-1`. Where several clusters share a subnet, a node is named `west/node-1`, and
`west/pods` is the subnet pods as the cluster west shows it.

Some steps hold something back for a while: a kubelet's DELs, an agent's first list of its pods. That is done here, so that
the programs and the rest of the simulation need not know of it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping

from podtide.agent.program import NodeAgent
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.interceptor import ClusterInterceptor, ListRequest
from podtide.cluster.port import Cluster, Page, R
from podtide.cni.versions import Verb
from podtide.core.errors import InvalidInput
from podtide.resources.metadata_keys import SUBNET_LABEL
from podtide.resources.node_network_config import NodeNetworkConfigStatus
from podtide.resources.pod import Pod
from podtide.simulation import stage
from podtide.simulation.full_names import full_name, parted
from podtide.simulation.nodes.machine import Machine
from podtide.simulation.nodes.plugin_caller import AgentDoors
from podtide.simulation.world.site import Site
from podtide.simulation.world.world import PortWrappers, World

EACH_NODE = "each node"
"""Instead of a node's name: all nodes; `each node of west` are those of one cluster."""
_OF = f"{EACH_NODE} of "
_CONTROLLER = "controller"


class HeldBackDeletes:
    """Calls the plugin, but may hold a node's DELs back: the runtime gets a success."""

    def __init__(self, doors: AgentDoors) -> None:
        self._doors = doors
        self._held: dict[str, list[tuple[Mapping[str, str], bytes]]] = {}

    async def open(self, node: str, agent: NodeAgent) -> None:
        """Let the plugin reach the node's agent."""
        await self._doors.open(node, agent)

    async def close(self, node: str) -> None:
        """Cut the plugin off from the node's agent."""
        await self._doors.close(node)

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output."""
        if node in self._held and environment["CNI_COMMAND"] == Verb.DEL:
            self._held[node].append((environment, stdin))
            return 0, b""
        return await self._doors.call(node, environment, stdin)

    def hold_back(self, node: str) -> None:
        """Hold the node's DELs back from now on."""
        self._held.setdefault(node, [])

    async def deliver(self, node: str) -> None:
        """Deliver what was held back, in order, and hold nothing back any more."""
        for environment, stdin in self._held.pop(node, []):
            await self._doors.call(node, environment, stdin)


class _PodsWithheld(ClusterInterceptor):
    """The Cluster port of an agent whose lists of pods are answered only when `shown` is set."""

    def __init__(self, inner: Cluster, shown: asyncio.Event) -> None:
        super().__init__(inner)
        self._shown = shown

    async def intercept_list(self, request: ListRequest[R]) -> Page[R]:
        if request.kind is Pod:
            await self._shown.wait()
        return await super().intercept_list(request)


class ClusterStage(stage.Stage):
    """The stage of one cluster of a scenario."""

    def __init__(self, world: World, cluster: EmbeddedCluster, deletes: HeldBackDeletes) -> None:
        super().__init__(world)
        self.cluster = cluster
        self.deletes = deletes
        self.controller = full_name(world.name, _CONTROLLER)
        self.kept = dict[str, NodeNetworkConfigStatus]()
        """Saved statuses of NodeNetworkConfigs, by node."""
        self.pods_shown: defaultdict[str, asyncio.Event] = defaultdict(_set_event)
        """By agent: not set while it cannot list its pods."""
        world.wrappers = PortWrappers(cluster=self._line, allocator=world.wrappers.allocator)

    def _line(self, program: str, line: Cluster) -> Cluster:
        if program == self.controller:
            return line
        return _PodsWithheld(line, self.pods_shown[program])

    def start_controller(self) -> None:
        """Start the cluster's controller."""
        self.world.start_controller(self.controller)

    async def add_node(self, name: str, subnet: str = "") -> None:
        """Add a machine, in the default subnet or in this one."""
        if name in self.world.machines:
            there = self.world.machines[name].full_name
            raise InvalidInput(f"{there} is there already: give a new node another name, or remove it first")
        await self.world.add_node(name, labels={SUBNET_LABEL: subnet} if subnet else None)


class ScenarioStage:
    """The stages of a scenario's clusters, and the lookup of names in the file."""

    def __init__(self, site: Site, clusters: Mapping[str, ClusterStage], subnets: Collection[str]) -> None:
        self.site = site
        self.clusters = clusters
        """By their names; a single cluster's name is ""."""
        self.counting_from = 0
        """The point of the story from which counts begin."""
        self._subnets = subnets

    @property
    def first(self) -> ClusterStage:
        """The first cluster of the file: a subnet named without a cluster is read there."""
        return next(iter(self.clusters.values()))

    @property
    def world(self) -> World:
        """The first cluster's world. Clock, trace, programs and auditor are the same in all of them."""
        return self.first.world

    def cluster(self, name: str) -> ClusterStage:
        """The cluster of that name; InvalidInput if there is none."""
        if name not in self.clusters:
            there = ", ".join(filter(None, self.clusters)) or "but one, without a name"
            raise InvalidInput(f"there is no cluster {name!r}: the clusters are {there}")
        return self.clusters[name]

    def machine(self, node: str) -> Machine:
        """The node's machine; InvalidInput if there is none."""
        machine = self.site.machines.get(node)
        if machine is None:
            there = ", ".join(self.site.machines) or "none"
            raise InvalidInput(f"there is no node {node!r} at this point: the nodes are {there}")
        return machine

    def machines(self, name: str) -> list[Machine]:
        """The machines of a node's name, or of `each node`."""
        if name == EACH_NODE:
            return list(self.site.machines.values())
        if name.startswith(_OF):
            return list(self.cluster(name.removeprefix(_OF)).world.machines.values())
        return [self.machine(name)]

    def nodes(self, name: str) -> list[tuple[ClusterStage, str]]:
        """The nodes of a name, each with its cluster."""
        return [(self.clusters[machine.cluster], machine.name) for machine in self.machines(name)]

    def new_node(self, name: str) -> tuple[ClusterStage, str]:
        """The cluster of a new node, and its name there."""
        cluster, node = parted(name)
        return self.cluster(cluster), node

    def subnet(self, name: str) -> tuple[ClusterStage, str]:
        """The subnet of that name, "" for the default one, with the cluster to read it from."""
        cluster, subnet = parted(name or self.world.options.subnet)
        if subnet not in self._subnets:
            raise InvalidInput(f"there is no subnet {subnet!r}: the subnets are {', '.join(self._subnets)}")
        return self.cluster(cluster) if cluster else self.first, subnet

    def subnets(self, name: str) -> list[tuple[ClusterStage, str]]:
        """The subnet in all clusters, or in the named one."""
        there, subnet = self.subnet(name)
        return [(there, subnet)] if parted(name)[0] else [(each, subnet) for each in self.clusters.values()]


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
