"""Whether a pod fits on a node, as kube-scheduler and kubelets count: what is allocatable, less what pods there request."""

from collections import Counter
from collections.abc import Iterable, Iterator

from podtide.resources.address_requests import addresses_requested
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.resources.quantity import read_count
from podtide.simulation.nodes.pods import is_terminal, only_node

RESOURCES = (IPV4_RESOURCE, IPV6_RESOURCE)
_PODS = "pods"
_REPELLING = ("NoSchedule", "NoExecute")


def is_counted(pod: Pod) -> bool:
    """Whether a pod takes up what it requests on its node: until it has ended, and also while it is being deleted."""
    return bool(pod.spec.node_name) and not is_terminal(pod)


class NodeUse:
    """What the pods of one node request."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self.pods = 0
        self._requested = Counter[str]()
        for pod in pods:
            self.take(pod)

    def take(self, pod: Pod) -> None:
        """Count one more pod."""
        self.pods += 1
        for resource in RESOURCES:
            self._requested[resource] += addresses_requested(pod, resource)

    def requested(self, resource: str) -> int:
        """How much of a resource they request together."""
        return self._requested[resource]

    def lacking(self, pod: Pod, node: Node, *, missing_counts: bool) -> Iterator[str]:
        """What a node has too little of for one more pod.

        To a kubelet, a resource that its Node does not state at all is not missing (`missing_counts`), to a scheduler it is.
        """
        allocatable = node.status.allocatable
        if self.pods >= (read_count(allocatable.get(_PODS, "")) or self.pods + 1):
            yield _PODS
        for resource in RESOURCES:
            requested = addresses_requested(pod, resource)
            if requested and (resource in allocatable or missing_counts):
                has = read_count(allocatable.get(resource, "")) or 0
                if self._requested[resource] + requested > has:
                    yield resource


def repelled_by(pod: Pod, node: Node) -> Iterator[str]:
    """Why a scheduler does not take a node for a pod, whatever is free there."""
    if only_node(pod) not in {"", node.metadata.name}:
        yield "node(s) didn't match Pod's node affinity/selector"
    if node.spec.unschedulable or node.metadata.deletion_timestamp:
        yield "node(s) were unschedulable"
    for taint in node.spec.taints:
        if taint.effect in _REPELLING:
            yield f"node(s) had untolerated taint {{{taint.key}}}"
