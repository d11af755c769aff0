"""How many addresses the node's pods use without requesting one, for what the node publishes to schedulers.

A scheduler subtracts from a node's number what pods there request. Pods that were made before they had to request an address,
static pods, and those of namespaces that do not take part use one all the same. The controller deducts them from the number, and
it does not watch pods: the agent states them in an annotation, along with its other writes. It does so wherever it runs, since it
does not know whether Nodes publish anything: before the first pod requests an address, all of them count.
"""

from podtide.resources.address_requests import addresses_requested
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE
from podtide.resources.pod import Pod, PodPhase

_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


class PodRequests:
    """The pods of the node, with what each requests. A pod of two families requests one of each."""

    def __init__(self) -> None:
        self._requests: dict[str, int] = {}
        self._requested = 0
        self._using: set[str] = set()

    def note(self, pod: Pod) -> None:
        """Take in a pod as it is now."""
        self.forget(pod)
        if pod.status.phase in _ENDED:
            return  # a scheduler no longer counts it, and its address is about to be free
        uid = pod.metadata.uid
        self._requests[uid] = max(addresses_requested(pod, each) for each in (IPV4_RESOURCE, IPV6_RESOURCE))
        self._requested += self._requests[uid]
        if not pod.spec.host_network:
            self._using.add(uid)

    def forget(self, pod: Pod) -> None:
        """Forget a pod."""
        self._requested -= self._requests.pop(pod.metadata.uid, 0)
        self._using.discard(pod.metadata.uid)

    def unrequested(self, needed: int, outlived: int) -> int:
        """Addresses that are used beyond what all pods request; `needed` is the node's demand.

        More are needed than pods use where sandboxes outlive their pods: a number that did not leave them out would grow with
        every pod that is placed by it. `outlived` pods use an address of a former Node: the demand does not count them either.
        """
        return max(len(self._using) - outlived, needed) - self._requested

    @property
    def any_requested(self) -> bool:
        """Whether a pod requests one: only then is it worth a write of its own."""
        return self._requested > 0
