"""How many addresses a pod requests by an extended resource, counted as the scheduler and the kubelet count.

What is counted differently here would be published wrongly, and then pods hang or a kubelet refuses them.
"""

from podtide.resources.pod import Pod, PodContainer
from podtide.resources.quantity import read_count


def addresses_requested(pod: Pod, resource: str) -> int:
    """The pod's effective request of the resource.

    It is the larger of two sums: what runs in the end, that is all containers and sidecars; and the most that runs at
    once on the way there, that is an init container beside the sidecars started before it.
    """
    sidecars = most_at_start = 0
    for container in pod.spec.init_containers:
        requested = _requested(container, resource)
        most_at_start = max(most_at_start, sidecars + requested)
        if container.is_sidecar:
            sidecars += requested
    return max(most_at_start, sidecars + sum(_requested(each, resource) for each in pod.spec.containers))


def _requested(container: PodContainer, resource: str) -> int:
    """What one container requests; an API server lets no text pass that is not a count."""
    return read_count(container.resources.requests.get(resource, "")) or 0
