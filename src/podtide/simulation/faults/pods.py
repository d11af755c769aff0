"""Pods that end otherwise than by being deleted in good order."""

from random import Random

from podtide.resources.pod import Pod, PodPhase
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.pods import NAMESPACE, is_terminal


class PodEvicted(Mishap):
    """The kubelet evicts a pod: it has failed, and stays to be looked at."""

    name = "pod-evicted"
    every_seconds = 20.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """End it."""
        pod = await _any(scene, chance)
        if pod is None or is_terminal(pod):
            return ""
        await scene.world.workload.complete_pod(pod.metadata.name, PodPhase.FAILED)
        return str(pod.key)


class PodForceDeleted(Mishap):
    """Somebody deletes a pod with --force: the object is gone at once, while its sandbox still is there."""

    name = "pod-force-deleted"
    every_seconds = 20.0

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Take the object away."""
        pod = await _any(scene, chance)
        if pod is None:
            return ""
        scene.cluster.server.delete(Pod, pod.metadata.name, NAMESPACE, grace_seconds=0)
        return str(pod.key)


async def _any(scene: Scene, chance: Random) -> Pod | None:
    pods = (await scene.world.cluster.list(Pod, NAMESPACE)).items
    return chance.choice(pods) if pods else None
