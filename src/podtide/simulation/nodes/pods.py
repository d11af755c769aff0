"""Pods of a simulated cluster: created bound to a node, without a scheduler."""

from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec

NAMESPACE = "default"
MANAGER = "podtide-simulation"
"""The field manager of what the rest of a cluster writes: Nodes, pods and their status."""

_TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


def new_pod(name: str, node: str, *, namespace: str = NAMESPACE, host_network: bool = False) -> Pod:
    """A pod bound to a node, with the fewest fields that an API server accepts."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodSpec(
            node_name=node,
            host_network=host_network,
            containers=[PodContainer(name="main", image="registry.invalid/nothing")],
        ),
    )


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has ended, and does not need its address any more."""
    return pod.status.phase in _TERMINAL
