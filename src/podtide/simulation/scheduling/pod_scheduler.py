"""A scheduler as kube-scheduler works, as far as placement is concerned: it binds pods to nodes by what Nodes publish.

Its view of pods and Nodes are caches of its own, which may be stale. A pod that it has bound counts on its node from then on
(it is assumed there), before the cache shows it. A pod that fits nowhere is tried again when a pod or a Node changes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NoReturn

from msgspec import structs

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster, NotFound, Patch
from podtide.core.errors import RetryError
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.runtime.runtime import Runtime
from podtide.simulation.nodes.node_fit import NodeUse, is_counted, repelled_by
from podtide.simulation.nodes.pods import is_terminal

MANAGER = "kube-scheduler"
_RETRY_SECONDS = 1.0
_SEEN_WITHIN_SECONDS = 30.0
"""A pod is assumed to be bound for at most so long: the cluster may have been restored to a time before that."""


class NodeChoice(StrEnum):
    """Which of the nodes that a pod fits on it is bound to."""

    SPREAD = "spread"
    """The one with the fewest pods, which is the default of kube-scheduler."""
    PACK = "pack"
    """The one with the most pods."""
    RANDOM = "random"


class PodScheduler:
    """The scheduler of a cluster, for one `run`."""

    def __init__(self, cluster: Cluster, *, choice: NodeChoice, runtime: Runtime) -> None:
        self.reasons: dict[str, str] = {}
        """Why pods that fit nowhere are not bound, in kube-scheduler's words, by namespace and name."""
        self.bound = 0
        """How many pods it has bound."""
        self._cluster = cluster
        self._choice = choice
        self._randomness = runtime.randomness
        self._log = runtime.log
        self._assumed: dict[str, Pod] = {}
        """Pods whose binding is in flight or not seen yet, by uid, as they will be."""
        self._news = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._pods = Informer(cluster, Pod, runtime=runtime)
        self._nodes = Informer(cluster, Node, runtime=runtime)
        self._pods.add_handler(self._hear_pod)
        self._nodes.add_handler(lambda _old, _new: self._news.set())

    async def run(self) -> None:
        """Bind pods until cancelled."""
        async with self._tasks:
            self._tasks.create_task(self._pods.run())
            self._tasks.create_task(self._nodes.run())
            await self._pods.synced.wait()
            await self._nodes.synced.wait()
            await self._schedule()

    async def _schedule(self) -> NoReturn:
        while True:
            self._news.clear()
            self._look_at_all()
            await self._news.wait()

    def _hear_pod(self, old: Pod | None, new: Pod | None) -> None:
        known = new or old
        assert known is not None
        if new is None or new.spec.node_name:
            self._assumed.pop(known.metadata.uid, None)
        if new is None:
            self.reasons.pop(str(known.key), None)
        self._news.set()

    def _look_at_all(self) -> None:
        pods = self._pods.items()
        waiting = [pod for pod in pods if self._is_waiting(pod)]
        if not waiting:
            return
        nodes = sorted(self._nodes.items(), key=lambda node: node.metadata.name)
        uses = {node.metadata.name: NodeUse() for node in nodes}
        for pod in (*filter(is_counted, pods), *self._assumed.values()):
            if (use := uses.get(pod.spec.node_name)) is not None:
                use.take(pod)
        for pod in sorted(waiting, key=lambda pod: (pod.metadata.creation_timestamp or "", str(pod.key))):
            self._look_at(pod, nodes, uses)

    def _is_waiting(self, pod: Pod) -> bool:
        has_place = bool(pod.spec.node_name) or pod.metadata.uid in self._assumed
        return not has_place and not is_terminal(pod) and not pod.metadata.deletion_timestamp

    def _look_at(self, pod: Pod, nodes: Sequence[Node], uses: dict[str, NodeUse]) -> None:
        fitting, reasons = [], Counter[str]()
        for node in nodes:
            against = list(_against(pod, node, uses[node.metadata.name]))
            reasons.update(against)
            if not against:
                fitting.append(node.metadata.name)
        if not fitting:
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
            self.reasons[str(pod.key)] = f"0/{len(nodes)} nodes are available: {told}."
            return
        self.reasons.pop(str(pod.key), None)
        chosen = self._choose(fitting, lambda name: uses[name].pods)
        uses[chosen].take(pod)
        assumed = self._assumed[pod.metadata.uid] = _on(pod, chosen)
        self._tasks.create_task(self._bind(pod, assumed))

    def _choose(self, names: Sequence[str], pods: Callable[[str], int]) -> str:
        match self._choice:
            case NodeChoice.SPREAD:
                return min(names, key=pods)
            case NodeChoice.PACK:
                return max(names, key=pods)
            case _:
                return self._randomness.choice(names)

    async def _bind(self, pod: Pod, assumed: Pod) -> None:
        place = pod.metadata
        try:
            await self._cluster.patch(
                Patch(
                    Pod,
                    place.name,
                    namespace=place.namespace,
                    changes={"spec": {"nodeName": assumed.spec.node_name}},
                    uid=place.uid,
                    resource_version=place.resource_version,
                ),
                manager=MANAGER,
            )
        except (
            NotFound,
            RetryError,
        ) as error:  # it is gone, changed, or bound after all: the cache will show it
            self._log.info("will try again", pod=str(pod.key), error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            self.bound += 1
            await asyncio.sleep(_SEEN_WITHIN_SECONDS)
        if self._assumed.get(place.uid) is assumed:
            del self._assumed[place.uid]
            self._news.set()


def _against(pod: Pod, node: Node, use: NodeUse) -> list[str]:
    """What speaks against a node, in kube-scheduler's words."""
    lacking = use.lacking(pod, node, missing_counts=True)
    return [
        *repelled_by(pod, node),
        *("Too many pods" if resource == "pods" else f"Insufficient {resource}" for resource in lacking),
    ]


def _on(pod: Pod, node: str) -> Pod:
    """The pod as it is once it is bound."""
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
