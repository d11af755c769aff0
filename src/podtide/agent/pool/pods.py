"""The facts of a pod that matter to the agent of its node."""

from podtide.core.pool.demand import PodOnNode
from podtide.resources.pod import Pod, PodPhase

CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash"
"""On the mirror of a static pod: the uid that the kubelet and the runtime use for the pod."""

_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


def pod_on_node(pod: Pod) -> PodOnNode:
    """The facts that decide whether the pod needs an address."""
    metadata = pod.metadata
    ended = pod.status.phase in _ENDED
    return PodOnNode(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        config_hash=metadata.annotations.get(CONFIG_HASH_ANNOTATION, ""),
        needs_address=not (pod.spec.host_network or ended or metadata.deletion_timestamp),
        ended=ended,
    )


def shown_addresses(pod: Pod) -> tuple[str, ...]:
    """The addresses in the pod's status; none for a pod on the host's network or one that has ended.

    The status of a pod that has ended shows the address it had, which its sandbox may have freed long ago.
    """
    if pod.spec.host_network or pod.status.phase in _ENDED:
        return ()
    shown = [address.ip for address in pod.status.pod_ips]
    return tuple(shown) if shown or not pod.status.pod_ip else (pod.status.pod_ip,)
