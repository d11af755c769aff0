"""What a scenario file is played on: the stage of every story, and what only a scenario's steps need.

Some steps hold something back for a while: a kubelet's DELs, an agent's first look at its pods. What is held back is
held here, so that the programs and the rest of the simulation know nothing of it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from podtide.agent.program import NodeAgent
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Cluster, Page, R
from podtide.cni.versions import Verb
from podtide.core.errors import InvalidInput
from podtide.resources.marks import SUBNET_LABEL
from podtide.resources.node_network_config import NodeNetworkConfigStatus
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.simulation import stage
from podtide.simulation.machine import Machine
from podtide.simulation.plugin_caller import AgentDoors
from podtide.simulation.recording import RecordingCluster
from podtide.simulation.trace import Trace
from podtide.simulation.world import Between, World

EACH_NODE = "each node"
"""In the place of a node's name: all there are."""
CONTROLLER = "controller"


class HeldBackDeletes:
    """Doors of agents by which a node's DELs may be held back: the runtime takes them for done."""

    def __init__(self, doors: AgentDoors) -> None:
        self._doors = doors
        self._held: dict[str, list[tuple[Mapping[str, str], bytes]]] = {}

    async def open(self, node: str, agent: NodeAgent) -> None:
        """The node's agent serves."""
        await self._doors.open(node, agent)

    async def close(self, node: str) -> None:
        """The node's agent is no more."""
        await self._doors.close(node)

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        """Exit status and standard output."""
        if node in self._held and environment["CNI_COMMAND"] == Verb.DEL:
            self._held[node].append((environment, stdin))
            return 0, b""
        return await self._doors.call(node, environment, stdin)

    def hold_back(self, node: str) -> None:
        """From now on the node's DELs go nowhere."""
        self._held.setdefault(node, [])

    async def deliver(self, node: str) -> None:
        """What was held back arrives, in order, and what comes from now on does."""
        for environment, stdin in self._held.pop(node, []):
            await self._doors.call(node, environment, stdin)


class _PodsWithheld(RecordingCluster):
    """An agent's line by which pods cannot be listed while somebody withholds them."""

    def __init__(
        self, inner: Cluster, program: str, shown: asyncio.Event, *, clock: Clock, trace: Trace
    ) -> None:
        super().__init__(inner, program, clock=clock, trace=trace)
        self._shown = shown

    async def list(  # noqa: PLR0913 - the port's
        self,
        kind: type[R],
        namespace: str = "",
        *,
        fields: str = "",
        labels: str = "",
        limit: int = 0,
        more: str = "",
    ) -> Page[R]:
        if kind is Pod:
            await self._shown.wait()
        return await super().list(kind, namespace, fields=fields, labels=labels, limit=limit, more=more)


class ScenarioStage(stage.Stage):
    """The stage of one scenario."""

    def __init__(self, world: World, cluster: EmbeddedCluster, deletes: HeldBackDeletes) -> None:
        super().__init__(world)
        self.cluster = cluster
        self.deletes = deletes
        self.counting_from = 0
        """The point of the story that counts begin at."""
        self.kept = dict[str, NodeNetworkConfigStatus]()
        """NodeNetworkConfigs' status that was put aside, by node."""
        self.pods_shown: defaultdict[str, asyncio.Event] = defaultdict(_set_event)
        """By agent: clear while it cannot list its pods."""
        world.between = Between(cluster=self._line, allocator=world.between.allocator)

    def _line(self, program: str, line: Cluster) -> Cluster:
        if program == CONTROLLER:
            return line
        shown = self.pods_shown[program]
        return _PodsWithheld(line, program, shown, clock=self.world.clock, trace=Trace())

    def machine(self, node: str) -> Machine:
        """The node's machine; InvalidInput if there is none."""
        machine = self.world.machines.get(node)
        if machine is None:
            there = ", ".join(self.world.machines) or "none"
            raise InvalidInput(f"there is no node {node!r} at this point: the nodes are {there}")
        return machine

    def nodes(self, name: str) -> list[str]:
        """The nodes that a name stands for."""
        return list(self.world.machines) if name == EACH_NODE else [self.machine(name).name]

    async def add_node(self, name: str, subnet: str = "") -> None:
        """A machine joins, in the default subnet or in this one."""
        if name in self.world.machines:
            raise InvalidInput(f"{name} is there already: give a new node another name, or remove it first")
        await self.world.add_node(name, labels={SUBNET_LABEL: subnet} if subnet else None)


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
