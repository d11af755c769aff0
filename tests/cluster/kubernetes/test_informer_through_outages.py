"""Informers on a real API server, through all that can happen to it and to the way there."""

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Generic
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from cluster.kubernetes.bad_network import BadNetwork, bad_network
from control_plane.cluster import ControlPlane
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.kubernetes import Access, ApiServerTimeouts, KubernetesCluster, find_access
from podtide.cluster.port import Cluster, ClusterError, R
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.pod import Pod, PodContainer, PodSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness, system_randomness
from podtide.runtime.runtime import Runtime

pytestmark = pytest.mark.slow

LOOPBACK = "127.0.0.1"
NAMES = [f"item-{number}" for number in range(8)]
OUTAGE_SECONDS = 8.0
CATCH_UP_SECONDS = 90.0
MOST_ATTEMPTS_IN_A_SECOND = 10
TIMEOUTS = ApiServerTimeouts(connect_seconds=2, answer_seconds=5, silence_seconds=5)


class Follower(Generic[R]):
    """An informer, and what its handlers would believe if they only went by what they are told."""

    def __init__(self, cluster: Cluster, kind: type[R], namespace: str) -> None:
        clock = SystemClock()
        self.kind = kind
        self.namespace = namespace
        self.heard = asyncio.Event()
        self.informer = Informer(
            cluster,
            kind,
            Scope(namespace=namespace),
            runtime=Runtime(clock=clock, randomness=system_randomness(), log=make_logger(sys.stderr, clock)),
        )
        self.told: dict[Key, R] = {}
        self.lists = 0
        self.surprises: list[tuple[R | None, R | None]] = []
        """Changes that do not follow from what was told before."""
        self.informer.add_handler(self._hear)
        self.informer.on_list.append(self._count_list)

    def _count_list(self) -> None:
        self.lists += 1

    def _hear(self, old: R | None, new: R | None) -> None:
        known = self.told.pop(old.key, None) if old is not None else new and self.told.get(new.key)
        if known != old:
            self.surprises.append((old, new))
        if new is not None:
            self.told[new.key] = new
        self.heard.set()

    async def agrees_with(self, truth: Cluster) -> bool:
        """Whether the copy, and what handlers were told, is what the server has."""
        page = await truth.list(self.kind, self.namespace)
        server = {item.key: item for item in page.items}
        return self.told == server == {item.key: item for item in self.informer.items()}


class Life:
    """Objects that come, change and go, whether or not the server is there to be told."""

    def __init__(self, cluster: Cluster, namespace: str, randomness: Random) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._randomness = randomness

    async def go_on(self) -> None:
        while True:
            with suppress(ClusterError):
                await self._change(self._randomness.choice(NAMES))
            await asyncio.sleep(0.02)

    async def _change(self, name: str) -> None:
        metadata = ObjectMeta(name=name, namespace=self._namespace)
        match self._randomness.randrange(6):
            case 0:
                await self._cluster.delete(NodeNetworkConfig, name, self._namespace)
            case 1:
                await self._cluster.delete(Pod, name, self._namespace)
            case 2:
                spec = PodSpec(containers=[PodContainer(name="main", image="registry.invalid/nothing")])
                await self._cluster.create(Pod(metadata=metadata, spec=spec), manager="life")
            case 3:
                pod = await self._cluster.get(Pod, name, self._namespace)
                labels = {"seen": str(self._randomness.randrange(1000))}
                wish = Pod(metadata=replace(metadata, uid=pod.metadata.uid, labels=labels))
                await self._cluster.apply(wish, manager="life")
            case _:
                requested = NodeNetworkConfigSpec(requested_ip_count=self._randomness.randrange(1000))
                await self._cluster.apply(
                    NodeNetworkConfig(metadata=metadata, spec=requested), manager="life"
                )


def access(control_plane: ControlPlane, through: BadNetwork | None = None) -> Access:
    direct = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    if through is None:
        return direct
    return replace(direct, endpoint=replace(direct.endpoint, server=f"https://{LOOPBACK}:{through.port}"))


def connected(to: Access) -> KubernetesCluster:
    return KubernetesCluster(to, clock=SystemClock(), randomness=system_randomness(), timeouts=TIMEOUTS)


@asynccontextmanager
async def running(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def hear_again(followers: Sequence[Follower[Any]]) -> None:
    """Wait until everybody is told of something new, so that what comes next is a change for the worse."""
    async with asyncio.timeout(CATCH_UP_SECONDS):
        for follower in followers:
            follower.heard.clear()
            await follower.heard.wait()


async def agree(followers: Sequence[Follower[Any]], truth: Cluster) -> None:
    async with asyncio.timeout(CATCH_UP_SECONDS):
        for follower in followers:
            follower.heard.clear()
            while not await follower.agrees_with(truth):
                await follower.heard.wait()
                follower.heard.clear()


async def crash_five_times(control_plane: ControlPlane) -> None:
    """And let etcd forget its history meanwhile, so that versions from before are too old."""
    for _ in range(5):
        await asyncio.to_thread(control_plane.kill_api_server)
        await asyncio.to_thread(control_plane.compact)
        await asyncio.to_thread(control_plane.start_api_server)
        await asyncio.sleep(1)


async def test_copies_equal_the_servers_truth_after_crashes_compaction_cuts_and_silence(
    control_plane: ControlPlane,
) -> None:
    namespace = f"outages-{uuid.uuid4().hex[:8]}"
    control_plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    async with (
        bad_network(LOOPBACK, urlsplit(control_plane.url).port or 0) as network,
        connected(access(control_plane)) as truth,
        connected(access(control_plane, network)) as cluster,
    ):
        life = Life(truth, namespace, seeded_randomness(1))
        followers: list[Follower[Any]] = [
            Follower(cluster, NodeNetworkConfig, namespace),
            Follower(cluster, Pod, namespace),
        ]
        async with running(*(follower.informer.run() for follower in followers)):
            async with running(life.go_on()):
                await hear_again(followers)
                await crash_five_times(control_plane)
                await hear_again(followers)
                network.cut()
                await asyncio.sleep(OUTAGE_SECONDS)
                network.recover()
                await hear_again(followers)
                network.fall_silent()
                await asyncio.sleep(OUTAGE_SECONDS)
                network.recover()
                await hear_again(followers)
            await agree(followers, truth)
        assert sum(follower.lists for follower in followers) > len(followers)
        assert [follower.surprises for follower in followers] == [[], []]
        assert network.most_attempts_in_a_second() <= MOST_ATTEMPTS_IN_A_SECOND
