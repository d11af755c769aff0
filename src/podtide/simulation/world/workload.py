"""What a cluster's users do, as far as addresses are concerned: create, complete and delete pods.

Where there is no scheduler, they bind pods to nodes themselves.
"""

from typing import TYPE_CHECKING

from msgspec import structs

from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.resources.pod import Pod, PodPhase
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE, new_pod, only_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from podtide.simulation.scheduling.address_policy import AddressPolicy


class Workload:
    """Creates and deletes pods, each with a name of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.made = 0
        """How many pods were created."""
        self.on_pod: list[Callable[[str, bool], None]] = []
        """Called with every pod that needs an address from then on (True), and with every one that does not any more."""
        self.policy: AddressPolicy | None = None
        """Where a scheduler finds nodes for pods: what makes them request an address."""

    async def add_pods(self, node: str, count: int, *, host_network: bool = False) -> list[str]:
        """Create pods for a node, one by one, and return their names. They are bound to it unless there is a scheduler."""
        names = []
        for _ in range(count):
            names.append(f"pod-{self.made}")
            self.made += 1
            if not host_network:
                self._tell(names[-1], is_there=True)
            await self.create_pod(names[-1], node, host_network=host_network)
        return names

    async def add_unbound_pods(self, count: int, *, only_on: str = "") -> list[str]:
        """Create pods for the scheduler to bind, to a certain node or to any, and return their names."""
        return await self.add_pods(only_on, count)

    async def create_pod(self, name: str, node: str, *, host_network: bool = False) -> Pod:
        """Create a pod of that name, bound to a node; with a scheduler, for that node alone if it is not ""."""
        if self.policy is None:
            pod = new_pod(name, node, host_network=host_network)
        else:
            pod = new_pod(name, "", resources=self.policy.requirements(name), only_on=node)
        return await self._cluster.create(pod, manager=MANAGER)

    async def replace_pod(self, pod: Pod) -> None:
        """Delete a pod, and create another of its name that may run on the same nodes."""
        place = pod.metadata
        await self._cluster.delete(Pod, place.name, place.namespace, uid=place.uid)
        await self.create_pod(place.name, only_node(pod))

    async def remove_pod(self, name: str) -> None:
        """Delete a pod: its kubelet does the rest."""
        await self._cluster.delete(Pod, name, NAMESPACE)
        self._tell(name, is_there=False)

    async def complete_pod(self, name: str, phase: PodPhase = PodPhase.SUCCEEDED) -> None:
        """Set a terminal phase: the pod has succeeded or failed, and its object stays."""
        while True:
            pod = await self.get_pod(name)
            status = structs.replace(pod.status, phase=phase)
            try:
                await self._cluster.replace_status(structs.replace(pod, status=status), manager=MANAGER)
            except Conflict:
                continue
            self._tell(name, is_there=False)
            return

    async def clear_node(self, node: str) -> None:
        """Fail and delete the pods of a node that is gone, as the cluster's garbage collector does."""
        for pod in (await self._cluster.list(Pod, fields=f"spec.nodeName={node}")).items:
            place = pod.metadata
            try:
                await self.complete_pod(place.name, PodPhase.FAILED)
                await self._cluster.delete(Pod, place.name, place.namespace, uid=place.uid)
            except NotFound:
                continue

    async def get_pod(self, name: str) -> Pod:
        """The pod as it is now."""
        return await self._cluster.get(Pod, name, NAMESPACE)

    def _tell(self, name: str, *, is_there: bool) -> None:
        for tell in self.on_pod:
            tell(f"{NAMESPACE}/{name}", is_there)
