"""A kubelet's own check of a pod that is bound to it: one that exceeds what its Node has allocatable fails.

A kubelet checks every pod it is told of, with the Node as its cache shows it, and after a restart those that ran before, too. So
a Node must never publish less than the pods there request.
"""

from collections.abc import Iterable

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.resources.base import Key
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.runtime.runtime import Runtime
from podtide.simulation.nodes.node_fit import NodeUse


class NodeAdmission:
    """The check of one node's kubelet."""

    def __init__(self, cluster: Cluster, node: str, *, runtime: Runtime) -> None:
        self._name = node
        self.nodes = Informer(
            cluster,
            Node,
            Scope(fields=f"metadata.name={node}"),
            runtime=runtime,
        )
        """The kubelet's cache of its Node."""

    def refusal(self, pod: Pod, beside: Iterable[Pod]) -> str:
        """The reason why the pod is refused beside those that were admitted; "" if it is not."""
        node = self.nodes.get(Key("", self._name))
        if node is None:
            return ""
        return next((f"OutOf{what}" for what in NodeUse(beside).lacking(pod, node, missing_counts=False)), "")
