"""Fresh GETs of pods by name: the last check before anything of a pod is freed (design R3).

Answers are cached for one pass. All of them are newer than the allocations they judge, which is what matters.
"""

from podtide.cluster.informer import Informer
from podtide.cluster.listing import get_if_there
from podtide.cluster.port import Cluster
from podtide.controller.repair.snapshot import can_be_pod, pod_seen
from podtide.core.networks.leaks import PodSeen
from podtide.networks.ownership import may_be_reservation_of
from podtide.networks.pods import addresses_shown
from podtide.resources.base import Key
from podtide.resources.node import Node
from podtide.resources.pod import Pod


class PodLookup:
    """Pods as they are now."""

    def __init__(self, cluster: Cluster, nodes: Informer[Node]) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._pods: dict[str, Pod | None] = {}
        self._nodes_there: dict[str, bool] = {}

    async def seen(self, podref: str) -> PodSeen | None:
        """The pod of that `namespace/name`; None if it does not exist."""
        pod = await self._pod(podref)
        if pod is None:
            return None
        is_there = not pod.spec.node_name or await self._is_node_there(pod.spec.node_name)
        return pod_seen(pod, lambda _node: is_there)

    async def shows(self, podref: str, reservation: str) -> bool | None:
        """Whether the pod shows an address that a reservation of that name can be of; None if it shows none."""
        pod = await self._pod(podref)
        shown = addresses_shown(pod) if pod else None
        return (
            None if shown is None else any(may_be_reservation_of(reservation, address) for address in shown)
        )

    async def _pod(self, podref: str) -> Pod | None:
        if not can_be_pod(podref):
            return None
        if podref not in self._pods:
            namespace, _, name = podref.partition("/")
            self._pods[podref] = await get_if_there(self._cluster, Pod, name, namespace)
        return self._pods[podref]

    async def _is_node_there(self, name: str) -> bool:
        """Whether the Node exists. The cache may be stale, so a Node that it lacks is read afresh."""
        if self._nodes.get(Key("", name)) is not None:
            return True
        if name not in self._nodes_there:
            self._nodes_there[name] = await get_if_there(self._cluster, Node, name) is not None
        return self._nodes_there[name]
