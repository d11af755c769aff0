"""The addresses that living pods show, by fresh lists: a stale cache must not make an address free for another pod."""

from collections import defaultdict

from podtide.cluster.field_selector import field_is
from podtide.cluster.listing import list_kept
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.core.ranges import parse_address
from podtide.networks.pods import has_ended
from podtide.resources.pod import Pod


async def shown_on(cluster: Cluster, node: str) -> set[str]:
    """The addresses that living pods bound to a node's name show."""
    return set().union(*await list_kept(cluster, Pod, fields=field_is("spec.nodeName", node), keep=shown_by))


async def shown_by_node(cluster: Cluster) -> dict[str, set[str]]:
    """The addresses that all living pods show, by the name of their node."""
    shown = defaultdict[str, set[str]](set)
    for node, addresses in await list_kept(cluster, Pod, keep=_shown_with_node):
        shown[node] |= addresses
    return shown


def _shown_with_node(pod: Pod) -> tuple[str, set[str]] | None:
    addresses = shown_by(pod)
    return (pod.spec.node_name, addresses) if addresses else None


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
