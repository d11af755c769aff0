"""Pods that end otherwise than by a graceful deletion, and sandboxes that die."""

from random import Random

from podtide.cluster.port import DeletePreconditions
from podtide.resources.pod import Pod, PodPhase
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.nodes.pods import NAMESPACE, is_terminal, only_node


class PodEvicted(Mishap):
    """The kubelet evicts a pod: it has failed, and its object stays."""

    name = "pod-evicted"
    every_seconds = 20.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Fail a pod."""
        pod = await _any(scene, chance)
        if pod is None or is_terminal(pod):
            return ""
        await scene.world.workload.complete_pod(pod.metadata.name, PodPhase.FAILED)
        return str(pod.key)


class PodForceDeleted(Mishap):
    """A pod is deleted with --force: the object is gone at once, while its sandbox still exists."""

    name = "pod-force-deleted"
    every_seconds = 20.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete the object at once."""
        pod = await _any(scene, chance)
        if pod is None:
            return ""
        scene.cluster.server.delete(Pod, pod.metadata.name, NAMESPACE, DeletePreconditions(grace_seconds=0))
        return str(pod.key)


class PodReplaced(Mishap):
    """A StatefulSet's pod is deleted with --force: the next of its name is created while the old sandbox still exists."""

    name = "pod-replaced"
    every_seconds = 20.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """Delete the object at once, and create another of its name."""
        pod = await _any(scene, chance)
        if pod is None:
            return ""
        name, workload = pod.metadata.name, scene.world.workload
        node = pod.spec.node_name if workload.policy is None else only_node(pod)
        scene.cluster.server.delete(Pod, name, NAMESPACE, DeletePreconditions(grace_seconds=0))
        await workload.create_pod(name, node)
        return str(pod.key)


class SandboxDied(Mishap):
    """A pod's sandbox ends by itself, as when it is out of memory: the pod gets another."""

    name = "sandbox-died"
    every_seconds = 10.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        """End a sandbox that has its addresses."""
        machine = scene.pick_machine(chance)
        alive = [each for each in machine.kubelet.sandboxes() if each.addresses] if machine else []
        if machine is None or not alive:
            return ""
        sandbox = chance.choice(alive)
        machine.kubelet.lose_sandbox(sandbox)
        return f"of {sandbox.pod} on {machine.name}"


async def _any(scene: FaultScene, chance: Random) -> Pod | None:
    pods = (await scene.world.cluster.list(Pod, NAMESPACE)).items
    return chance.choice(pods) if pods else None
