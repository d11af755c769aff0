"""What `podtide why` needs to know, read from the cluster's objects and, where it is told how, from the allocator."""

import re
from collections.abc import Iterable

from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.cli.cluster_lists import get_if_there, list_all
from podtide.cli.observed_node import ObservedNode
from podtide.cli.why.programs import LeaderState, read_leader
from podtide.cli.why.subnets import SubnetFacts, read_subnets
from podtide.cluster.field_selector import field_is
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.resources.base import Resource
from podtide.resources.event import Event
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

_NAME = re.compile(r"(?:(?P<kind>pods?|po|nodes?|no)/)?(?P<name>[^/]+)")


class NoSuchSubject(InvalidInput):
    """Neither a pod nor a node is called that."""


class WhyFacts(Struct, frozen=True, kw_only=True):
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
    leader: LeaderState
    now: float
    """Wall-clock seconds."""


async def gather_facts(
    cluster: Cluster, name: str, namespace: str, now: float, allocator: Allocator | None = None
) -> WhyFacts:
    """The facts about `pod/NAME`, `node/NAME`, or a bare NAME, which is a pod's before it is a node's.

    With an allocator, what it says of the subnets counts instead of what objects say.
    """
    pod, node = await _find(cluster, name, namespace)
    node_name = node.metadata.name if node else pod.spec.node_name if pod else ""
    if node is None and node_name:
        node = await get_if_there(cluster, Node, node_name)
    observed = await _observe(cluster, node_name)
    subnets = await read_subnets(cluster, observed, allocator)
    about = (pod, node, observed.config, *(subnet.subnet for subnet in subnets))
    return WhyFacts(
        pod=pod,
        node=node,
        observed=observed,
        subnets=subnets,
        events=await _events(cluster, about),
        leader=await read_leader(cluster, now),
        now=now,
    )


async def _find(cluster: Cluster, name: str, namespace: str) -> tuple[Pod | None, Node | None]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise NoSuchSubject(f"{name!r} names neither: give a pod's or a node's name, pod/NAME or node/NAME")
    kind, bare = (match["kind"] or "")[:1], match["name"]
    if kind != "n" and (pod := await get_if_there(cluster, Pod, bare, namespace)):
        return pod, None
    if kind != "p" and (node := await get_if_there(cluster, Node, bare)):
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
    config = await get_if_there(cluster, NodeNetworkConfig, name, SYSTEM_NAMESPACE)
    return ObservedNode(name=name, config=config, pods=tuple(pods))


async def _events(cluster: Cluster, about: Iterable[Resource | None]) -> tuple[Event, ...]:
    found: list[Event] = []
    for item in filter(None, about):
        fields = f"involvedObject.kind={item.api.kind},involvedObject.name={item.metadata.name}"
        events = await list_all(cluster, Event, item.metadata.namespace or "default", fields=fields)
        # An earlier object of the name has nothing to do with this one. Kubelets name a node by its name as uid.
        same = {"", item.metadata.uid, item.metadata.name}
        found += [event for event in events if event.involved_object.uid in same]
    return tuple(sorted(found, key=lambda event: event.last_timestamp or event.first_timestamp or ""))
