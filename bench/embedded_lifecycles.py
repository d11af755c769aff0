"""What a simulated cluster asks of the embedded one: pods that come and go, watched by those who act on them.

Each pod is created on its node, shown to run, marked for deletion, shown to have ended, and removed: five writes. Two
informers per node hear of it, as its agent and its kubelet would. For every burst of pods the node's agent applies its
NodeNetworkConfig and a controller answers in its status, heard of by the node and by one who watches all nodes.
"""

import asyncio
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import EVERYTHING, Informer, Scope
from podtide.cluster.port import R
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.node_network_config import (
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.pod import Pod, PodContainer, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

PART = "cluster"
NODES = 100
LIFECYCLES = 10_000
BURST = 10
ADDRESSES = 50
LIVE_PODS = 150_000
PODS_PER_NODE = 30
NAMESPACE = "default"

_spawn = multiprocessing.get_context("spawn")


def measure() -> Iterator[tuple[str, str]]:
    """Pods through their whole life, then what many live ones weigh."""
    rate = virtual_time.run(_lifecycles_per_second())
    yield f"embedded: pod lifecycles, {NODES} nodes, two watchers each", f"{rate:,.0f}/s"
    results: SimpleQueue[float] = _spawn.SimpleQueue()
    process = _spawn.Process(target=_report_weight, args=(results,))
    process.start()
    yield f"embedded: memory per pod, {LIVE_PODS:,} running and watched alike", f"{results.get():.1f} kB"
    process.join()


async def _lifecycles_per_second() -> float:
    stage = Stage()
    stage.follow(NodeNetworkConfig, EVERYTHING)
    nodes = [NodeUnderLoad(stage, f"node-{number}") for number in range(NODES)]
    bursts = LIFECYCLES // NODES // BURST
    begin = perf_counter()
    await asyncio.gather(*(node.live(bursts) for node in nodes))
    seconds = perf_counter() - begin
    await stage.close()
    return NODES * bursts * BURST / seconds


def _report_weight(results: "SimpleQueue[float]") -> None:
    results.put(virtual_time.run(_kilobytes_per_live_pod()))


async def _kilobytes_per_live_pod() -> float:
    stage = Stage()
    nodes = [NodeUnderLoad(stage, f"node-{number}") for number in range(LIVE_PODS // PODS_PER_NODE)]
    await asyncio.sleep(1)  # until every informer follows
    before = _resident_kilobytes()
    for node in nodes:
        await node.fill(PODS_PER_NODE)
    await asyncio.sleep(1)
    weight = _resident_kilobytes() - before
    await stage.close()
    return weight / LIVE_PODS


def _resident_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


class Stage:
    """A cluster on virtual time, and all who follow it."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.randomness = seeded_randomness(1)
        self.cluster = EmbeddedCluster(clock=self.clock, randomness=self.randomness)
        self._log = make_logger(sys.stderr, self.clock)
        self._following: list[asyncio.Task[None]] = []

    def follow(self, kind: type[R], scope: Scope) -> Informer[R]:
        """An informer at work."""
        informer = Informer(
            self.cluster,
            kind,
            scope,
            runtime=Runtime(clock=self.clock, randomness=self.randomness, log=self._log),
        )
        self._following.append(asyncio.create_task(informer.run()))
        return informer

    async def close(self) -> None:
        """End everything."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self.cluster.close()


class NodeUnderLoad:
    """A node whose pods come and go in bursts."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._cluster = stage.cluster
        self._name = name
        pods = Scope(fields=f"spec.nodeName={name}")
        self._agents_pods = stage.follow(Pod, pods)
        self._kubelets_pods = stage.follow(Pod, pods)
        self._config = stage.follow(
            NodeNetworkConfig, Scope(namespace=NAMESPACE, fields=f"metadata.name={name}")
        )

    async def live(self, bursts: int) -> None:
        """Let that many bursts of pods come and go."""
        await self._config.synced.wait()
        for number in range(bursts):
            await self._request(number)
            keys = [await self._start(f"{self._name}-{number}-{pod}") for pod in range(BURST)]
            await asyncio.sleep(1)
            for key in keys:
                await self._end(key)
        await asyncio.sleep(1)
        assert not self._agents_pods.items()
        assert not self._kubelets_pods.items()

    async def fill(self, pods: int) -> None:
        """Let that many pods come and stay."""
        for number in range(pods):
            await self._start(f"{self._name}-{number}")

    async def _request(self, version: int) -> None:
        metadata = ObjectMeta(name=self._name, namespace=NAMESPACE)
        spec = NodeNetworkConfigSpec(requested_ip_count=ADDRESSES + version)
        config = await self._cluster.apply(
            NodeNetworkConfig(metadata=metadata, spec=spec), manager="podtide-agent"
        )
        container = NetworkContainer(
            id=self._name,
            version=version,
            primary_ip="10.0.0.4",
            subnet_name="pods",
            ip_assignments=[
                IPAssignment(name=f"{self._name}-{version}-{address}", ip=f"10.0.1.{address}")
                for address in range(ADDRESSES)
            ],
        )
        status = NodeNetworkConfigStatus(assigned_ip_count=ADDRESSES, network_containers=[container])
        await self._cluster.replace_status(replace(config, status=status), manager="podtide-controller")

    async def _start(self, name: str) -> Key:
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace=NAMESPACE),
            spec=PodSpec(
                node_name=self._name, containers=[PodContainer(name="main", image="registry.invalid/nothing")]
            ),
        )
        pod = await self._cluster.create(pod, manager="workload")
        running = PodStatus(phase=PodPhase.RUNNING, pod_ip="10.0.1.7", pod_ips=[PodIP(ip="10.0.1.7")])
        await self._cluster.replace_status(replace(pod, status=running), manager="kubelet")
        return pod.key

    async def _end(self, key: Key) -> None:
        await self._cluster.delete(Pod, key.name, key.namespace)
        await asyncio.sleep(1)
        pod = self._kubelets_pods.get(key)
        assert pod is not None
        assert pod.metadata.deletion_timestamp
        ended = replace(pod, status=replace(pod.status, phase=PodPhase.SUCCEEDED))
        await self._cluster.replace_status(ended, manager="kubelet")
        await self._cluster.delete(Pod, key.name, key.namespace, uid=pod.metadata.uid)
