"""What of a pod tells whether it still has what it was given in a secondary network."""

from collections.abc import Iterable

from msgspec import Struct, field

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, parse_address
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.foreign_json import decode_json

NETWORK_STATUS_ANNOTATIONS = ("k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status")
"""Where Multus writes, once all of a pod's interfaces are there, which addresses it has; the second is the older name."""

CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash"
"""On the mirror of a static pod: the uid that the kubelet and the runtime know the pod by."""


class _Interface(Struct, frozen=True):
    ips: list[str] = field(default_factory=list)


def uids_of(pod: Pod) -> frozenset[str]:
    """The uids by which its sandboxes may know the pod."""
    metadata = pod.metadata
    return frozenset({metadata.uid, metadata.annotations.get(CONFIG_HASH_ANNOTATION, "")} - {""})


def has_ended(pod: Pod) -> bool:
    """Whether it has succeeded or failed. A Pending pod has not: its sandbox may be starting."""
    return pod.status.phase in {PodPhase.SUCCEEDED, PodPhase.FAILED}


def uids_of_living(pods: Iterable[Pod]) -> dict[str, frozenset[str]]:
    """Pods that have not ended, as `namespace/name`, with their uids."""
    return {str(pod.key): uids_of(pod) for pod in pods if not has_ended(pod)}


def addresses_shown(pod: Pod) -> frozenset[IPAddress] | None:
    """The addresses of all its interfaces, as its network status tells; None when it tells nothing."""
    written = next(
        filter(None, map(pod.metadata.annotations.get, NETWORK_STATUS_ANNOTATIONS)),
        "",
    )
    try:
        interfaces = decode_json(written, list[_Interface])
        return frozenset(parse_address(ip) for interface in interfaces for ip in interface.ips)
    except InvalidInput:
        return None
