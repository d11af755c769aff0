"""What the agent makes of a pod of its node."""

from podtide.core.pool.demand import PodOnNode
from podtide.resources.pod import Pod, PodPhase

CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash"
"""On the mirror of a static pod: the uid that the kubelet and the runtime know the pod by."""

_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


def pod_on_node(pod: Pod) -> PodOnNode:
    """The few facts that decide whether the pod needs an address, however much else of it changes."""
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
    """The addresses that the pod's status shows, none for a pod on the host's network or one that has ended.

    A pod that has ended shows what it had: its sandbox may have given that back long ago.
    """
    if pod.spec.host_network or pod.status.phase in _ENDED:
        return ()
    shown = [address.ip for address in pod.status.pod_ips]
    return tuple(shown) if shown or not pod.status.pod_ip else (pod.status.pod_ip,)
