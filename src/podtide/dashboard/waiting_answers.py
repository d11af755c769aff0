"""Pods that wait for an address: looked up now, with why and what would help, by the records of their nodes and subnets.

The obstacles are looked for in the order in which an address travels: the node, its pool, the leader, the allocator, the
subnet, the agent. The first one found is told; `podtide why` has the whole chain of one pod.
"""

from podtide.cluster.port import ClusterError
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
        if pod.requests_address:
            return "no node", (
                "the scheduler has to find it a node that publishes addresses: if its Events say that there are not enough, pods "
                "have to end or the subnet has to grow"
            )
        return "no node", "the scheduler has to find it a node; nothing asks for its address before that"
    node = state.nodes.get(pod.node)
    if node is None:
        return "node gone", f"node {pod.node} is gone: Kubernetes removes its pods"
    if not node.subnets:
        return "no container", node.message or f"node {node.name} has no network container yet"
    return _on_its_way(state, node)


def _on_its_way(state: PageState, node: NodeRecord) -> tuple[str, str]:
    if node.free is not None and node.free > 0 and node.free >= node.waiting:
        return "address ready", (
            f"node {node.name} has {node.free} free: the next call of the CNI plugin takes one; if this lasts, see the kubelet's log there"
        )
    return _not_granted(state, node) if node.owed else _not_asked_for(state, node)


def _not_granted(state: PageState, node: NodeRecord) -> tuple[str, str]:
    if not state.health.leader.ok:
        return "no leader", state.health.leader.message
    if state.health.allocator.ok is False:
        return (
            "allocator away",
            f"nothing is granted until the allocator answers: {state.health.allocator.message}",
        )
    full = [found for name in node.subnets if (found := state.subnets.get(name)) and found.free == 0]
    return _full(full[0]) if full else ("being granted", _granting(node))


def _not_asked_for(state: PageState, node: NodeRecord) -> tuple[str, str]:
    silent = next((each for each in state.health.agents.silent if each.node == node.name), None)
    if silent is not None:
        return "agent silent", silent.message
    if node.demand is not None and node.request and node.request < node.demand:
        return "node full", (
            f"node {node.name} has {node.demand} pods and may hold {node.request} addresses: raise max_ips, or move pods to other nodes"
        )
    return "being asked for", (
        f"the agent on node {node.name} asks within a second; if this lasts, `podtide why` tells the whole chain"
    )


def _full(subnet: SubnetRecord) -> tuple[str, str]:
    idle = f", {subnet.idle} idle on nodes" if subnet.idle else ""
    rest = f" and {subnet.quarantined} in quarantine" if subnet.quarantined else ""
    return "subnet full", (
        f"all {subnet.capacity} addresses of subnet {subnet.name} are reserved{idle}{rest}: grow it with `podtide subnet grow`, or end pods"
    )


def _granting(node: NodeRecord) -> str:
    return (
        node.message
        or f"node {node.name} is owed {node.owed}: the request controller grants them within seconds"
    )
