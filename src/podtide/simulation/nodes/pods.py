"""Pods as a simulated cluster's workloads make them: bound to a node from the start, no scheduler needed."""

from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec

NAMESPACE = "default"
MANAGER = "podtide-simulation"
"""Under this name the simulation writes what the rest of a cluster would: nodes, pods and their status."""

_TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


def new_pod(name: str, node: str, *, namespace: str = NAMESPACE, host_network: bool = False) -> Pod:
    """A pod on a node, as little of one as an API server accepts."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodSpec(
            node_name=node,
            host_network=host_network,
            containers=[PodContainer(name="main", image="registry.invalid/nothing")],
        ),
    )


def is_terminal(pod: Pod) -> bool:
    """Whether it has ended, and needs its address no more."""
    return pod.status.phase in _TERMINAL
