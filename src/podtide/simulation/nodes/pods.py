"""Pods of a simulated cluster: created bound to a node, or without one where a scheduler finds it."""

from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec, ResourceRequirements

NAMESPACE = "default"
MANAGER = "podtide-simulation"
"""The field manager of what the rest of a cluster writes: Nodes, pods and their status."""

_ONLY_NODE = "simulation/only-node"
"""On a pod: the one node on which it can run, as by a node selector or a volume."""
_TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


def new_pod(  # noqa: PLR0913 - what a pod may be made with
    name: str,
    node: str,
    *,
    namespace: str = NAMESPACE,
    host_network: bool = False,
    resources: ResourceRequirements | None = None,
    only_on: str = "",
) -> Pod:
    """A pod bound to a node unless that is "", with the fewest fields that an API server accepts."""
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, annotations={_ONLY_NODE: only_on} if only_on else {}
        ),
        spec=PodSpec(
            node_name=node,
            host_network=host_network,
            containers=[
                PodContainer(
                    name="main",
                    image="registry.invalid/nothing",
                    resources=resources or ResourceRequirements(),
                )
            ],
        ),
    )


def only_node(pod: Pod) -> str:
    """The one node on which the pod can run; "" for any."""
    return pod.metadata.annotations.get(_ONLY_NODE, "")


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has ended, and does not need its address any more."""
    return pod.status.phase in _TERMINAL
