"""A law of the embedded cluster: whoever lists and then watches knows, after any writes, what a list would say."""

import asyncio
from contextlib import aclosing
from functools import partial
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from examples import examples
from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.port import AlreadyExists, Change, Gone, NotFound
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.pod import Pod, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.virtual_time import VirtualTimeLoop

names = st.sampled_from(["a", "b", "c"])
namespaces = st.sampled_from(["x", "x-y"])
nodes = st.sampled_from(["", "n1", "n2"])
labels = st.dictionaries(st.sampled_from(["tier", "app"]), st.sampled_from(["1", "2"]))


class Mirror:
    """What one watcher knows: it lists in pages of two, follows, resumes, and lists anew when told to."""

    def __init__(self, cluster: EmbeddedCluster, namespace: str, fields: str, labels: str) -> None:
        self.pods: dict[Key, Pod] = {}
        self._list_pods = partial(cluster.list, Pod, namespace, fields=fields, labels=labels)
        self._watch_pods = partial(cluster.watch, Pod, namespace, fields=fields, labels=labels)
        self._version = 0

    async def truth(self) -> list[Pod]:
        """What one list says."""
        return (await self._list_pods()).items

    async def follow(self) -> None:
        while True:
            version = await self._list()
            try:
                while True:
                    version = await self._watch(version)
            except Gone:
                continue

    async def _list(self) -> str:
        page = await self._list_pods(limit=2)
        while True:
            items = list(page.items)
            try:
                while page.more:
                    page = await self._list_pods(limit=2, more=page.more)
                    items += page.items
            except Gone:
                page = await self._list_pods(limit=2)
                continue
            break
        assert [item.key for item in items] == sorted((item.key for item in items), key=str)
        self.pods = {item.key: item for item in items}
        self._version = int(page.resource_version)
        return page.resource_version

    async def _watch(self, version: str) -> str:
        async with aclosing(self._watch_pods(resource_version=version)) as watch:
            async for event in watch:
                version = event.resource_version
                assert int(version) > self._version, "versions only grow, and nothing comes twice"
                self._version = int(version)
                self._take(event.change, event.item)
        return version

    def _take(self, change: Change, item: Pod | None) -> None:
        if item is None:
            assert change is Change.BOOKMARK
            return
        assert (item.key in self.pods) is (change is not Change.ADDED)
        if change is Change.DELETED:
            del self.pods[item.key]
        else:
            self.pods[item.key] = item


class WatchersKnowWhatAListSays(RuleBasedStateMachine):
    """Random writes on a cluster with a short memory and little patience for slow watchers."""

    queries: ClassVar[list[tuple[str, str, str]]] = [
        ("", "", ""),
        ("x", "", ""),
        ("", "metadata.name=a", ""),
        ("x-y", "metadata.name=b", ""),
        ("", "spec.nodeName=n1", ""),
        ("", "spec.nodeName=", "tier=1"),
        ("", "spec.nodeName!=n1", "!app"),
        ("", "status.phase=Running", ""),
        ("x", "", "tier in (1,2),app!=1"),
    ]

    @initialize()
    def open(self) -> None:
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.cluster = EmbeddedCluster(
            clock=LoopClock(),
            randomness=seeded_randomness(1),
            limits=ApiServerLimits(history=6, unread=2, bookmark_seconds=3, watch_seconds=20),
        )
        self.mirrors = [Mirror(self.cluster, *query) for query in self.queries]
        self.tasks = [self.runner.get_loop().create_task(mirror.follow()) for mirror in self.mirrors]

    @rule(name=names, namespace=namespaces, node=nodes, labels=labels)
    def create(self, name: str, namespace: str, node: str, labels: dict[str, str]) -> None:
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace=namespace, labels=labels), spec=PodSpec(node_name=node)
        )
        self.runner.run(self._create(pod))

    @rule(name=names, namespace=namespaces, node=nodes, labels=labels)
    def replace(self, name: str, namespace: str, node: str, labels: dict[str, str]) -> None:
        metadata = ObjectMeta(name=name, namespace=namespace, labels=labels)
        self.runner.run(self._replace(Pod(metadata=metadata, spec=PodSpec(node_name=node))))

    @rule(name=names, namespace=namespaces, phase=st.sampled_from(PodPhase))
    def report(self, name: str, namespace: str, phase: PodPhase) -> None:
        self.runner.run(self._report(name, namespace, PodStatus(phase=phase)))

    @rule(name=names, namespace=namespaces)
    def delete(self, name: str, namespace: str) -> None:
        self.runner.run(self._delete(name, namespace))

    @rule(count=st.integers(1, 12))
    def burst(self, count: int) -> None:
        """Writes in one go, while no watcher gets a turn worth speaking of."""
        self.runner.run(self._burst(count))

    @rule()
    def forget_history(self) -> None:
        self.cluster.server.expire_history()

    @rule()
    def drop_all_watches(self) -> None:
        self.cluster.server.close_watches()

    @rule(seconds=st.sampled_from([1, 5, 30]))
    def wait(self, seconds: int) -> None:
        self.runner.run(asyncio.sleep(seconds))

    @invariant()
    def every_mirror_is_as_the_list(self) -> None:
        self.runner.run(self._compare())

    def teardown(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.runner.close()

    async def _create(self, pod: Pod) -> None:
        try:
            await self.cluster.create(pod, manager="machine")
        except AlreadyExists:
            await self.cluster.get(Pod, pod.metadata.name, pod.metadata.namespace)

    async def _replace(self, pod: Pod) -> None:
        try:
            await self.cluster.replace(pod, manager="machine")
        except NotFound:
            await self._create(pod)

    async def _report(self, name: str, namespace: str, status: PodStatus) -> None:
        try:
            pod = await self.cluster.get(Pod, name, namespace)
        except NotFound:
            return
        await self.cluster.replace_status(replace(pod, status=status), manager="machine")

    async def _delete(self, name: str, namespace: str) -> None:
        try:
            await self.cluster.delete(Pod, name, namespace)
        except NotFound:
            return

    async def _burst(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for index in range(count):
                pod = Pod(
                    metadata=ObjectMeta(name="ab"[index % 2], namespace="x", labels={"tier": str(index % 3)})
                )
                group.create_task(self._replace(pod))

    async def _compare(self) -> None:
        await asyncio.sleep(0.1)
        for task in self.tasks:
            if task.done():
                task.result()
        for mirror in self.mirrors:
            assert [mirror.pods[key] for key in sorted(mirror.pods, key=str)] == await mirror.truth()


TestWatchersKnowWhatAListSays = WatchersKnowWhatAListSays.TestCase
TestWatchersKnowWhatAListSays.settings = examples(40, stateful_step_count=25, deadline=None)
