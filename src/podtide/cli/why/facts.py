"""What `podtide why` reads: a pod or node, its subnets, Events, the controllers' Lease, and the allocator if it is named.

R is the allocator's number. Where the allocator is not asked, a ClusterSubnet's `reserved` may be half a minute old,
and what nodes show to hold is a lower bound.
"""

import re
from collections.abc import Iterable

from msgspec import Struct, structs

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet
from podtide.cli.observed.node import ObservedNode, observe_nodes
from podtide.cluster.field_selector import field_is
from podtide.cluster.listing import get_if_there, list_all
from podtide.cluster.port import Cluster, Forbidden, NotFound
from podtide.controller.leadership import LEASE, NEVER_LED, LeaderState, leader_in
from podtide.controller.subnets.status import IN_REACH
from podtide.core.errors import InvalidInput
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.event import Event
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.resources.statement_annotation import statement_in

_NAME = re.compile(r"(?:(?P<kind>pods?|po|nodes?|no)/)?(?P<name>[^/]+)")


class NoSuchSubject(InvalidInput):
    """There is neither a pod nor a node of that name."""


class SubnetFacts(Struct, frozen=True, kw_only=True):
    """What is known of one subnet; its objects may be missing."""

    name: str
    network: str
    subnet: ClusterSubnet | None
    state: ClusterSubnetState | None
    holders: tuple[ObservedNode, ...]
    """All nodes with a container in the subnet; with their pods only if the subnet is full."""
    at_allocator: Subnet | None = None
    """None if the allocator was not asked, or could not be."""
    allocator_error: AllocatorError | InvalidInput | None = None
    """Why it could not be asked. The request controller may still reach it, by its own options."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the subnet runs low; its ClusterSubnet takes precedence over its ClusterSubnetState."""
        if self.subnet is not None and self.subnet.is_judged:
            return self.subnet.status.exhausted or self.subnet.status.starved
        return self.state is not None and self.state.status is not None and self.state.status.exhausted

    @property
    def capacity(self) -> int | None:
        """Q; None if nothing states it."""
        if self.at_allocator is not None:
            return self.at_allocator.capacity
        return self.subnet.status.capacity if self.subnet is not None and self.subnet.is_judged else None

    @property
    def shown(self) -> int:
        """The number of addresses that this cluster's nodes show to hold, primaries included: a lower bound of R."""
        return sum(
            1 + len(container.ip_assignments)
            for holder in self.holders
            for container in holder.containers
            if container.subnet_name == self.name
        )

    @property
    def reserved(self) -> int:
        """R, as fresh as it is known."""
        if self.at_allocator is not None:
            return self.at_allocator.reserved
        return max(self.subnet.status.reserved if self.subnet is not None else 0, self.shown)

    @property
    def source(self) -> str:
        """The source of `reserved`."""
        if self.at_allocator is not None:
            return "by the allocator"
        if self.out_of_reach is not None:
            return "before the allocator stopped answering"
        if self.subnet is not None and self.subnet.status.reserved >= self.shown:
            return f"by ClusterSubnet {self.name}, at most half a minute ago"
        return "at least: by what nodes show"

    @property
    def free(self) -> int | None:
        """The number of free addresses; None if the capacity is not known."""
        return None if self.capacity is None else max(0, self.capacity - self.reserved)

    @property
    def elsewhere(self) -> int:
        """The number of reserved addresses that no node of this cluster shows: of other clusters, and in quarantine."""
        return max(0, self.reserved - self.shown)

    @property
    def out_of_reach(self) -> Condition | None:
        """The condition that the request controller cannot reach the allocator; None if it can."""
        conditions = self.subnet.status.conditions if self.subnet is not None else []
        return next(
            (each for each in conditions if each.type == IN_REACH and each.status == ConditionStatus.FALSE),
            None,
        )

    def owed(self) -> dict[str, int]:
        """How many addresses of the subnet each node is owed; nodes that are owed none are left out."""
        owed = {
            holder.name: sum(
                holder.owed_in(container)
                for container in holder.containers
                if container.subnet_name == self.name
            )
            for holder in self.holders
        }
        return {name: count for name, count in owed.items() if count}

    def idle(self) -> dict[str, int]:
        """How many addresses nodes hold for no pod and do not give back, most first. Only if pods were read."""
        idle = {holder.name: holder.free_in(self.name) - len(holder.waiting) for holder in self.holders}
        return dict(sorted(((n, c) for n, c in idle.items() if c > 0), key=lambda each: (-each[1], each[0])))

    def silent(self) -> list[str]:
        """Nodes whose agent has not answered the batch in force."""
        in_force = self.subnet.status.scaler if self.subnet is not None else None
        if in_force is None:
            return []
        return [holder.name for holder in self.holders if _states_more(holder, in_force.batch)]


class WhyFacts(Struct, frozen=True, kw_only=True):
    """Everything that is known of a pod or a node."""

    pod: Pod | None
    """None if a node was asked for."""
    node: Node | None
    """None if the pod has no node yet, or the node is deleted."""
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
    """The facts about `pod/NAME`, `node/NAME`, or a bare NAME, which is looked up as a pod first, then as a node.

    With an allocator, its numbers of the subnets count instead of those of the objects.
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
    return f"there is {looked_for}: check the name{'' if kind == 'n' else ', and the namespace (-n)'}"


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
        # Skips Events of an earlier object of the name. Kubelets use a node's name as its uid in Events.
        same = {"", item.metadata.uid, item.metadata.name}
        found += [event for event in events if event.involved_object.uid in same]
    return tuple(sorted(found, key=lambda event: event.last_timestamp or event.first_timestamp or ""))


def _states_more(holder: ObservedNode, batch: int) -> bool:
    if holder.config is None:
        return False
    statement = statement_in(holder.config.metadata.annotations, holder.requested)
    return statement is not None and statement.batch > batch


async def read_subnets(
    cluster: Cluster, node: ObservedNode, allocator: Allocator | None
) -> tuple[SubnetFacts, ...]:
    """The subnets of a node's containers, in their order."""
    networks = {container.subnet_name: container.vnet_id for container in node.containers}
    if not networks:
        return ()
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    others = observe_nodes(configs, ())
    found = []
    for name, network in networks.items():
        facts = SubnetFacts(
            name=name,
            network=network,
            subnet=await get_if_there(cluster, ClusterSubnet, name, SYSTEM_NAMESPACE),
            state=await get_if_there(cluster, ClusterSubnetState, name, SYSTEM_NAMESPACE),
            holders=_in_subnet(others, name),
        )
        found.append(await _asked(facts, allocator) if allocator else facts)
    if any(facts.free == 0 for facts in found):
        # Idle addresses are computed only where they matter: that takes a list of all pods.
        others = observe_nodes(configs, await list_all(cluster, Pod))
        found = [structs.replace(facts, holders=_in_subnet(others, facts.name)) for facts in found]
    return tuple(found)


async def _asked(facts: SubnetFacts, allocator: Allocator) -> SubnetFacts:
    try:
        return structs.replace(facts, at_allocator=await allocator.get_subnet(facts.network, facts.name))
    except (AllocatorError, InvalidInput) as error:
        return structs.replace(facts, allocator_error=error)


def _in_subnet(nodes: Iterable[ObservedNode], subnet: str) -> tuple[ObservedNode, ...]:
    return tuple(
        node for node in nodes if any(container.subnet_name == subnet for container in node.containers)
    )


async def read_leader(cluster: Cluster, now: float) -> LeaderState:
    """Read the controllers' Lease. If that is forbidden, nothing is reported."""
    try:
        lease = await cluster.get(Lease, LEASE.name, LEASE.namespace)
    except Forbidden:
        return LeaderState()
    except NotFound:
        return NEVER_LED
    return leader_in(lease.spec, now)
