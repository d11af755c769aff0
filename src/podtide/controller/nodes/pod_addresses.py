"""The addresses that living pods show, by fresh lists: a stale cache must not make an address free for another pod."""

from collections import defaultdict
from collections.abc import AsyncIterator

from podtide.cluster.field_selector import field_is
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.core.ranges import parse_address
from podtide.networks.pods import has_ended
from podtide.resources.pod import Pod

_PAGE = 500


async def shown_on(cluster: Cluster, node: str) -> set[str]:
    """The addresses that living pods bound to a node's name show."""
    shown: set[str] = set()
    async for pod in _listed(cluster, field_is("spec.nodeName", node)):
        shown |= shown_by(pod)
    return shown


async def shown_by_node(cluster: Cluster) -> dict[str, set[str]]:
    """The addresses that all living pods show, by the name of their node."""
    shown = defaultdict[str, set[str]](set)
    async for pod in _listed(cluster, ""):
        if addresses := shown_by(pod):
            shown[pod.spec.node_name] |= addresses
    return shown


def shown_by(pod: Pod) -> set[str]:
    """The addresses that a pod shows, if it has not ended and they are its own."""
    if pod.spec.host_network or has_ended(pod):
        return set()
    shown = set()
    for text in (pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips)):
        try:
            shown.add(str(parse_address(text)))
        except InvalidInput:
            continue  # no address, and so none of ours
    return shown


async def _listed(cluster: Cluster, fields: str) -> AsyncIterator[Pod]:
    more, is_last = "", False
    while not is_last:
        page = await cluster.list(Pod, fields=fields, limit=_PAGE, more=more)
        for pod in page.items:
            yield pod
        more, is_last = page.more, not page.more
