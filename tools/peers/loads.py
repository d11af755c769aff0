"""The loads, one after the other: in every round each contender has its turn, and who begins changes from round to round.

So whatever else the machine does meanwhile happens to all of them.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from control_plane.cluster import ControlPlane
from node_fleet import WRITERS, each
from peers.background import Background
from peers.cluster import PeerCluster
from peers.contenders import Contender, PeerPod
from peers.plugin_memory import peak_plugin_memory_bytes
from peers.results import Result, result_of
from peers.sizes import Load, Sizes
from peers.turns import Meters, Turn
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness
from process_costs import memory_bytes


class Memory(Struct, frozen=True):
    """What a contender takes of a node's memory, in bytes."""

    plugin_peak: int
    resident: int
    """What stays between calls: the agent's."""


class Run:
    """All loads in one cluster."""

    def __init__(self, cluster: PeerCluster, contenders: Sequence[Contender], sizes: Sizes) -> None:
        self._cluster = cluster
        self._contenders = [contender for contender in contenders if not contender.cannot]
        self._sizes = sizes
        self._meters = Meters(cluster.control_plane, cluster.directory)
        self._turns = 0

    def measure(self) -> Iterator[tuple[Load, Mapping[str, Result]]]:
        """Each load with its results, as they come."""
        sizes = self._sizes
        # What is made once, pools and their Leases, is made before anything is measured.
        self._play(Load(name="warm-up", nodes=sizes.nodes, pods_per_node=1, rounds=1))
        background = self._background()
        for load in (sizes.one, sizes.burst, sizes.fleet):
            yield load, self._results(load, background)
        asyncio.run(make_pools(self._cluster.control_plane, sizes.other_pools))
        yield sizes.beside_pools, self._results(sizes.beside_pools, self._background())

    def memory(self) -> dict[str, Memory]:
        """What each takes of a node's memory."""
        return {contender.name: self._memory_of(contender) for contender in self._contenders}

    def _results(self, load: Load, background: Background) -> dict[str, Result]:
        turns = self._play(load)
        return {name: result_of(of_one, background) for name, of_one in turns.items()}

    def _play(self, load: Load) -> dict[str, list[Turn]]:
        turns: dict[str, list[Turn]] = {contender.name: [] for contender in self._contenders}
        order = deque(self._contenders)
        for _ in range(load.rounds):
            for contender in order:
                pods = self._pods(load)
                turns[contender.name].append(self._meters.take_turn(contender, pods, self._sandboxes(pods)))
            order.rotate()
        return turns

    def _pods(self, load: Load) -> list[PeerPod]:
        """Nodes take turns as well: a burst comes to all nodes, not to one after the other."""
        by_node = [
            [pod for pod in self._cluster.pods if pod.node == node][: load.pods_per_node]
            for node in self._cluster.nodes[: load.nodes]
        ]
        return [pod for at_once in zip(*by_node, strict=True) for pod in at_once]

    def _sandboxes(self, pods: Sequence[PeerPod]) -> list[str]:
        self._turns += 1
        return [f"sandbox-{self._turns}-{pod.name}" for pod in pods]

    def _background(self) -> Background:
        agents = [agent.pid for agent in self._cluster.agents.values()]
        return self._meters.idle(self._sizes.idle_seconds, agents)

    def _memory_of(self, contender: Contender) -> Memory:
        directory: Path = self._cluster.directory
        pod = self._cluster.pods[0]
        peak = 0
        for _ in range(self._sizes.memory_rounds):
            [sandbox] = self._sandboxes([pod])
            peak = max(
                peak,
                peak_plugin_memory_bytes(contender.call("ADD", pod, sandbox), directory),
                peak_plugin_memory_bytes(contender.call("DEL", pod, sandbox), directory),
            )
        agents = contender.agent_pids(self._cluster.nodes)
        return Memory(peak, max(map(memory_bytes, agents), default=0))


async def make_pools(control_plane: ControlPlane, count: int) -> None:
    """Empty IPPools of networks that nobody asks for, as other nodes and networks of a cluster have them."""
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    async with KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness()) as cluster:

        async def make(name: str) -> None:
            number = int(name.rpartition("-")[2])
            range_ = f"10.{64 + number // 256}.{number % 256}.0/24"
            place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
            await cluster.create(
                IPPool(metadata=place, spec=IPPoolSpec(range=range_, allocations={})), manager="bench"
            )

        await each([f"other-{number}" for number in range(count)], make, WRITERS)
