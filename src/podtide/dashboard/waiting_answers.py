"""Pods that wait for an address: looked up now, with why and what would help, by the records of their nodes and subnets.

The obstacles are looked for in the order in which an address travels: the node, its pool, the leader, the allocator, the
subnet, the agent. The first one found is told, in the words of `podtide why`, which has the whole chain of one pod.
"""

from podtide.cluster.port import ClusterError
from podtide.controller import wait_reasons
from podtide.dashboard.answers import WaitingAnswer, WaitingPod, away
from podtide.dashboard.page_state import PageState
from podtide.dashboard.pod_finder import BriefPod, PodFinder
from podtide.dashboard.records import NodeRecord, SubnetRecord

_MOST_WAITING = 500


async def waiting_pods(state: PageState, pods: PodFinder) -> WaitingAnswer:
    """The pods that wait, longest first."""
    try:
        pending = await pods.pending()
    except ClusterError as error:
        raise away(f"pods could not be looked up: {error}") from error
    waiting = sorted(
        (pod for pod in pending.pods if pod.is_waiting), key=lambda pod: (pod.created or "", pod.key)
    )
    return WaitingAnswer(
        pods=tuple(_waiting_pod(state, pod) for pod in waiting[:_MOST_WAITING]),
        truncated=pending.is_cut or len(waiting) > _MOST_WAITING,
    )


def _waiting_pod(state: PageState, pod: BriefPod) -> WaitingPod:
    reason, message = _obstacle(state, pod)
    return WaitingPod(pod=pod.key, node=pod.node or None, since=pod.created, reason=reason, message=message)


def _obstacle(state: PageState, pod: BriefPod) -> tuple[str, str]:
    if not pod.node:
        return "no node", wait_reasons.no_node(pod.address_resources)
    node = state.nodes.get(pod.node)
    if node is None:
        return "node gone", wait_reasons.node_gone(pod.node)
    if not node.subnets:
        return "no container", node.message or f"node {node.name} has no network container yet"
    return _on_its_way(state, node)


def _on_its_way(state: PageState, node: NodeRecord) -> tuple[str, str]:
    if node.free is not None and node.free > 0 and node.free >= node.waiting:
        ready = wait_reasons.plugin_takes_one(node.name, node.free, max(1, node.waiting))
        return "address ready", f"{ready}; if this lasts, see the kubelet's log there"
    return _not_granted(state, node) if node.owed else _not_asked_for(state, node)


def _not_granted(state: PageState, node: NodeRecord) -> tuple[str, str]:
    if not state.health.leader.ok:
        return "no leader", state.health.leader.message
    if state.health.allocator.ok is False:
        return "allocator away", wait_reasons.allocator_away(state.health.allocator.message)
    full = [found for name in node.subnets if (found := state.subnets.get(name)) and found.free == 0]
    if full:
        return "subnet full", _full(full[0], state.network_of(full[0].name) or "NETWORK")
    return "being granted", node.message or wait_reasons.about_to_be_granted()


def _not_asked_for(state: PageState, node: NodeRecord) -> tuple[str, str]:
    silent = next((each for each in state.health.agents.silent if each.node == node.name), None)
    if silent is not None:
        return "agent silent", silent.message
    if node.demand is not None and node.request and node.request < node.demand:
        return "node full", wait_reasons.node_at_its_maximum(node.name, node.request, node.demand)
    asking = wait_reasons.about_to_be_asked_for(node.name)
    return "being asked for", f"{asking}; if this lasts, `podtide why` tells the whole chain"


def _full(subnet: SubnetRecord, network: str) -> str:
    parts = []
    if subnet.idle is not None:
        parts.append(f"{subnet.idle or 'none'} idle on nodes")
    if subnet.quarantined:
        parts.append(f"{subnet.quarantined} in quarantine")
    grow = f"podtide subnet grow {network} {subnet.name} CIDR"
    return wait_reasons.subnet_full(subnet.name, subnet.capacity, parts, grow)
