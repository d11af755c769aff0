"""What `podtide why` needs to know, read from the cluster's objects alone."""

import re
from collections.abc import Iterable

from msgspec import Struct

from podtide.cli.observed_node import ObservedNode
from podtide.cli.reading_cluster import list_all
from podtide.cluster.field_selector import field_is
from podtide.cluster.port import Cluster, NotFound, R
from podtide.core.errors import InvalidInput
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.event import Event
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

_NAME = re.compile(r"(?:(?P<kind>pods?|po|nodes?|no)/)?(?P<name>[^/]+)")


class NoSuchSubject(InvalidInput):
    """Neither a pod nor a node is called that."""


class SubnetFacts(Struct, frozen=True):
    """What the objects of one subnet say; either may be missing."""

    name: str
    subnet: ClusterSubnet | None
    state: ClusterSubnetState | None
    holders: tuple[ObservedNode, ...]
    """Every node with a container in the subnet."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the subnet runs low; its ClusterSubnet goes before its ClusterSubnetState."""
        if self.subnet is not None and self.subnet.is_judged:
            return self.subnet.status.exhausted or self.subnet.status.starved
        return self.state is not None and self.state.status is not None and self.state.status.exhausted

    @property
    def free(self) -> int | None:
        """Addresses nobody holds, as far as objects tell; None where none has a capacity.

        A ClusterSubnet's `reserved` may be a little old, so what its nodes show to have counts if that is more.
        """
        if self.subnet is None:
            return None
        status = self.subnet.status
        shown = sum(
            1 + len(container.ip_assignments)
            for holder in self.holders
            for container in holder.containers
            if container.subnet_name == self.name
        )
        return max(0, status.capacity - max(status.reserved, shown))

    def owed(self) -> dict[str, int]:
        """How many addresses of the subnet each node is owed; those that are owed none are left out."""
        owed = {
            holder.name: sum(
                holder.owed_in(container)
                for container in holder.containers
                if container.subnet_name == self.name
            )
            for holder in self.holders
        }
        return {name: count for name, count in owed.items() if count}


class Facts(Struct, frozen=True, kw_only=True):
    """All that is known of a pod or a node."""

    pod: Pod | None
    """None when a node was asked for."""
    node: Node | None
    """None when the pod has none yet, or the node is gone."""
    observed: ObservedNode
    subnets: tuple[SubnetFacts, ...]
    """In the order of the node's containers."""
    events: tuple[Event, ...]
    """Of the pod, the node, its NodeNetworkConfig and its subnets, oldest first."""
    now: float
    """Wall-clock seconds."""


async def gather_facts(cluster: Cluster, name: str, namespace: str, now: float) -> Facts:
    """The facts about `pod/NAME`, `node/NAME`, or a bare NAME, which is a pod's before it is a node's."""
    pod, node = await _find(cluster, name, namespace)
    node_name = node.metadata.name if node else pod.spec.node_name if pod else ""
    if node is None and node_name:
        node = await _get(cluster, Node, node_name)
    observed = await _observe(cluster, node_name)
    subnets = await _subnets(cluster, observed)
    about = (pod, node, observed.config, *(subnet.subnet for subnet in subnets))
    return Facts(
        pod=pod,
        node=node,
        observed=observed,
        subnets=subnets,
        events=await _events(cluster, about),
        now=now,
    )


async def _find(cluster: Cluster, name: str, namespace: str) -> tuple[Pod | None, Node | None]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise NoSuchSubject(f"{name!r} names neither: give a pod's or a node's name, pod/NAME or node/NAME")
    kind, bare = (match["kind"] or "")[:1], match["name"]
    if kind != "n" and (pod := await _get(cluster, Pod, bare, namespace)):
        return pod, None
    if kind != "p" and (node := await _get(cluster, Node, bare)):
        return None, node
    raise NoSuchSubject(await _what_there_is_instead(cluster, kind, bare, namespace))


async def _what_there_is_instead(cluster: Cluster, kind: str, name: str, namespace: str) -> str:
    looked_for = {"p": f"no pod {namespace}/{name}", "n": f"no node {name}"}.get(
        kind, f"neither a pod {namespace}/{name} nor a node {name}"
    )
    elsewhere = [] if kind == "n" else await list_all(cluster, Pod, fields=field_is("metadata.name", name))
    if elsewhere:
        return f"there is {looked_for}, but a pod in namespace {elsewhere[0].metadata.namespace}: name that with -n"
    return f"there is {looked_for}: check the name, and the namespace (-n)"


async def _observe(cluster: Cluster, name: str) -> ObservedNode:
    if not name:
        return ObservedNode(name="", config=None, pods=())
    pods = await list_all(cluster, Pod, fields=field_is("spec.nodeName", name))
    config = await _get(cluster, NodeNetworkConfig, name, SYSTEM_NAMESPACE)
    return ObservedNode(name=name, config=config, pods=tuple(pods))


async def _subnets(cluster: Cluster, node: ObservedNode) -> tuple[SubnetFacts, ...]:
    names = list(dict.fromkeys(container.subnet_name for container in node.containers))
    if not names:
        return ()
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    others = [ObservedNode(name=config.metadata.name, config=config, pods=()) for config in configs]
    return tuple(
        [
            SubnetFacts(
                name=name,
                subnet=await _get(cluster, ClusterSubnet, name, SYSTEM_NAMESPACE),
                state=await _get(cluster, ClusterSubnetState, name, SYSTEM_NAMESPACE),
                holders=tuple(other for other in others if _is_in(other, name)),
            )
            for name in names
        ]
    )


def _is_in(node: ObservedNode, subnet: str) -> bool:
    return any(container.subnet_name == subnet for container in node.containers)


async def _events(cluster: Cluster, about: Iterable[Resource | None]) -> tuple[Event, ...]:
    found: list[Event] = []
    for item in filter(None, about):
        fields = f"involvedObject.kind={item.api.kind},involvedObject.name={item.metadata.name}"
        events = await list_all(cluster, Event, item.metadata.namespace or "default", fields=fields)
        # An earlier object of the name has nothing to do with this one. Kubelets name a node by its name as uid.
        same = {"", item.metadata.uid, item.metadata.name}
        found += [event for event in events if event.involved_object.uid in same]
    return tuple(sorted(found, key=lambda event: event.last_timestamp or event.first_timestamp or ""))


async def _get(cluster: Cluster, kind: type[R], name: str, namespace: str = "") -> R | None:
    try:
        return await cluster.get(kind, name, namespace)
    except NotFound:
        return None
