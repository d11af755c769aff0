"""What a Node publishes of addresses, and how that is changed: values only, no I/O.

A number stands in capacity and in allocatable. A scheduler and the kubelet's own admission read allocatable; a kubelet
computes allocatable from capacity whenever it writes its status, and sets both to 0 when it starts without the records of its
device plugins. So both are written together, and a Node whose two numbers differ publishes none.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, to_builtins

from podtide.controller.grant_condition import GRANTED, GrantReason, condition_of
from podtide.controller.node_demand import known_demand
from podtide.controller.placement.subnet_rooms import NodeEntry, NodeMaximum, RoomReading
from podtide.core.subnet.demand_by_batch import PodRange, window_of
from podtide.core.subnet.placement import UNLIMITED, PublishedNode
from podtide.core.subnet.statement import StatedDemand
from podtide.resources.metadata_keys import (
    IPV4_RESOURCE,
    IPV6_RESOURCE,
    NETWORK_RESOURCE_PREFIX,
    NO_ADDRESSES_TAINT,
    unrequested_in,
)
from podtide.resources.node import Node, Taint
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig
from podtide.resources.quantity import read_count
from podtide.resources.statement_annotation import statement_in

_NO_SCHEDULE = "NoSchedule"
_REPELLING = frozenset({_NO_SCHEDULE, "NoExecute"})


class NodeDemand(Struct, frozen=True, kw_only=True):
    """What a node's NodeNetworkConfig says of its pods."""

    config: NodeNetworkConfig
    maximum: NodeMaximum
    unrequested: int

    @property
    def subnets(self) -> dict[str, str]:
        """The subnet of each resource that the node has addresses for."""
        containers = self.config.status.network_containers
        return {resource_of(each): each.subnet_name for each in containers if each.subnet_name}

    def published(self, reading: RoomReading, shown: int | None, *, is_bound: bool = False) -> PublishedNode:
        """The node as the rule takes it, in one of its subnets.

        `is_bound` says that pods were placed there by what is shown: it is what this term left there, or more.
        """
        pods, stated, is_outdated = self._pods(reading), self._stated_pods, self._is_outdated(reading)
        is_window = pods.least < pods.most
        placed = None
        if (
            is_window
            and stated is not None
            and shown is not None
            and (is_outdated or (is_bound and not reading.is_tight))
        ):
            placed = max(stated, shown + self.unrequested)
        return PublishedNode(
            pods=pods.most,
            least_pods=pods.least,
            possible_pods=max(pods.most, self._stated.high),
            maximum=self.maximum.usable,
            unrequested=self.unrequested,
            shown=shown,
            placed_pods=placed,
            is_outdated=is_window and is_outdated,
        )

    def entry(self, reading: RoomReading, number: int | None) -> NodeEntry:
        """The node as it counts in one of its subnets when it publishes this number."""
        pods = self._pods(reading)
        if self._is_outdated(reading) and (stated := self._stated_pods) is not None:
            # A window is wider than what is known, until the node narrows it.
            pods = PodRange(max(pods.least, min(stated, pods.most)), pods.most)
        published = 0 if number is None else number + self.unrequested
        return NodeEntry(
            pods=pods, number=published, maximum=self.maximum, node=self.published(reading, number)
        )

    @property
    def _stated_pods(self) -> int | None:
        """What the node stated last; None where it states nothing."""
        statement = statement_in(self.config.metadata.annotations, self.config.spec.requested_ip_count)
        return None if statement is None else statement.demand

    def _is_outdated(self, reading: RoomReading) -> bool:
        """Whether the node follows a batch that is no longer in force. One in two subnets may rightly follow the other one's."""
        config = self.config
        statement = statement_in(config.metadata.annotations, config.spec.requested_ip_count)
        if statement is None or len(config.status.network_containers) > 1:
            return False
        return statement.batch != min(reading.batch, statement.max_ips)

    @property
    def _stated(self) -> StatedDemand:
        of_two = len(self.config.status.network_containers) > 1
        return known_demand(self.config, self.maximum.addresses, of_two=of_two)[0]

    def _pods(self, reading: RoomReading) -> PodRange:
        """U⁻ and U⁺. A window ends at the node's maximum; pods beyond it are there all the same."""
        least, most = window_of(self._stated, reading.batch, reading.top)
        return PodRange(least, max(most, self._stated_pods or 0))


def demand_of(node: Node, config: NodeNetworkConfig | None, most: int) -> NodeDemand | None:
    """The node's demand; None for a node whose agent has asked for nothing yet, or does not tell what pods request."""
    if config is None or not config.status.network_containers or config.node_uid != node.metadata.uid:
        return None
    stated, _number = known_demand(config, most, of_two=False)
    unrequested = unrequested_in(config.metadata.annotations)
    if stated.is_empty or unrequested is None:
        return None
    pods = read_count(node.status.allocatable.get("pods", ""))
    return NodeDemand(
        config=config,
        maximum=NodeMaximum(UNLIMITED if pods is None else pods, stated.max_ips),
        unrequested=unrequested,
    )


def is_refused(config: NodeNetworkConfig) -> bool:
    """Whether the node has no address yet, not even its own, because its subnet has none."""
    granted = condition_of(config, GRANTED)
    return not config.status.network_containers and granted is not None and granted.reason == GrantReason.FULL


def resource_of(container: NetworkContainer) -> str:
    """The resource that stands for addresses of a container."""
    return IPV6_RESOURCE if container.primary_ipv6 else IPV4_RESOURCE


def shown_by(node: Node) -> dict[str, int | None]:
    """What a Node publishes of its subnets, by resource; None where capacity and allocatable differ, or are not counts."""
    return _shown_by(node, lambda name: name in (IPV4_RESOURCE, IPV6_RESOURCE))


def networks_shown_by(node: Node) -> dict[str, int | None]:
    """What a Node publishes of secondary networks, likewise."""
    return _shown_by(node, lambda name: name.startswith(NETWORK_RESOURCE_PREFIX))


def _shown_by(node: Node, is_meant: Callable[[str], bool]) -> dict[str, int | None]:
    capacity, allocatable = node.status.capacity, node.status.allocatable
    return {
        name: read_count(capacity[name]) if capacity.get(name) == allocatable.get(name) else None
        for name in sorted({*capacity, *allocatable})
        if is_meant(name)
    }


def resource_changes(numbers: Mapping[str, int | None]) -> dict[str, Any]:
    """The merge patch of a Node's status that sets these numbers; None removes one."""
    written = {name: None if number is None else str(number) for name, number in numbers.items()}
    return {"status": {"capacity": written, "allocatable": written}}


def is_tainted(node: Node) -> bool:
    """Whether the Node has the taint of nodes that can get no address."""
    return any(taint.key == NO_ADDRESSES_TAINT for taint in node.spec.taints)


def taint_changes(node: Node, *, tainted: bool) -> dict[str, Any]:
    """The merge patch of a Node that sets or removes the taint. Taints of others stay, so it is for this version only."""
    kept = [taint for taint in node.spec.taints if taint.key != NO_ADDRESSES_TAINT]
    own = [Taint(key=NO_ADDRESSES_TAINT, effect=_NO_SCHEDULE)] if tainted else []
    return {"spec": {"taints": to_builtins([*kept, *own]) or None}}


def is_schedulable(node: Node) -> bool:
    """Whether pods without tolerations can be placed on the Node, as far as it says; podtide's own taint does not count."""
    repelled = any(
        taint.effect in _REPELLING and taint.key != NO_ADDRESSES_TAINT for taint in node.spec.taints
    )
    return not (node.spec.unschedulable or repelled or node.metadata.deletion_timestamp)
