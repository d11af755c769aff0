"""The owner of a cluster's pods: makes another pod for one that failed, as a ReplicaSet or a StatefulSet does.

The new pod has the name of the one that failed, and no node.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.cluster.work_queue import WorkQueue
from podtide.resources.base import Key
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.runtime import Runtime

ReplacePod = Callable[[Pod], Awaitable[None]]
"""Deletes a pod, and creates another of its name."""
_PAUSE_SECONDS = 1.0


class PodOwner:
    """Owns all pods of a cluster."""

    def __init__(self, cluster: Cluster, replace: ReplacePod, *, runtime: Runtime) -> None:
        self.replaced = 0
        """How many pods had failed."""
        self._replace_pod = replace
        self._queue = WorkQueue[Key]()
        self._pods = Informer(cluster, Pod, runtime=runtime)
        self._pods.add_handler(self._hear)

    async def run(self) -> None:
        """Replace pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._replace())

    def _hear(self, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.status.phase is PodPhase.FAILED:
            self._queue.add(new.key)

    async def _replace(self) -> NoReturn:
        while True:
            key = await self._queue.take()
            await asyncio.sleep(_PAUSE_SECONDS)
            pod = self._pods.get(key)
            if pod is not None and pod.status.phase is PodPhase.FAILED:
                with suppress(NotFound, Conflict):  # somebody else has deleted it, and wants no other
                    await self._replace_pod(pod)
                    self.replaced += 1
            self._queue.done(key)
