"""Writes what nodes publish for schedulers: extended resources in a Node's status, and the taint if there is to be one.

Raised numbers are written at once, lowered ones at most every half minute per node. A node whose agent has asked for nothing
yet publishes nothing, so no pod that requests an address is placed there before the agent can answer for it. It may be tainted
all the same: in a full subnet a new node is refused even the address that it needs to start.
"""

from collections.abc import Mapping

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.controller.placement.coverage import NodeCoverage
from podtide.controller.placement.node_resources import (
    NodeDemand,
    demand_of,
    is_refused,
    is_schedulable,
    is_tainted,
    resource_changes,
    shown_by,
    taint_changes,
)
from podtide.controller.placement.subnet_rooms import SubnetRooms
from podtide.controller.term_context import TermContext
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS, decide_published, has_no_room, least_number
from podtide.resources.base import Key
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig


class _WantedNumbers(Struct, frozen=True):
    """What a node is to publish, and whether no further pod can have an address there."""

    numbers: dict[str, int]
    is_full: bool
    short_in: tuple[str, ...]
    """The subnets of which it is to publish less than its room."""


class _LastWrite(Struct, frozen=True):
    """What was written to a Node, and which version of it that was decided from."""

    version: str
    numbers: dict[str, int | None]


class NodePublisher:
    """Publishes for nodes by name, one at a time for each."""

    def __init__(
        self,
        context: TermContext,
        nodes: Informer[Node],
        configs: Informer[NodeNetworkConfig],
        rooms: SubnetRooms,
        *,
        coverage: NodeCoverage,
    ) -> None:
        self._context = context
        self._nodes = nodes
        self._configs = configs
        self._rooms = rooms
        self._coverage = coverage
        self._taints = context.options.placement_taint
        """Without it the controller has no right to write taints: what is left of them is removed by a command."""
        self._written: dict[str, _LastWrite] = {}
        self._left: dict[str, Mapping[str, int | None]] = {}
        """What Nodes published when this term last looked at them, and after what it wrote then: no less than their pods request."""
        self._lowered_at: dict[str, float] = {}

    async def reconcile(self, name: str) -> float | None:
        """Publish for a node. Returns after how many seconds a lower number may be written, if there is one."""
        node = self._nodes.get(Key("", name))
        if node is None:
            self._forget(name)
            return None
        config = self._configs.get(Key(SYSTEM_NAMESPACE, name))
        demand = demand_of(node, config, self._context.settings.max_ips)
        self._coverage.note(name, schedulable=is_schedulable(node), publishes=demand is not None)
        if demand is None:
            return await self._without_numbers(node, config)
        subnets = demand.subnets.values()
        if any(self._rooms.reading(each) is None for each in subnets):
            self._rooms.note_unread(name, subnets)
            return None
        shown = self._shown(node)
        self._note(demand, shown)
        return await self._write(node, demand, shown)

    async def _without_numbers(self, node: Node, config: NodeNetworkConfig | None) -> float | None:
        """Write the taint alone, for a node that publishes nothing. Returns after how many seconds it may be written."""
        if shown_by(node):
            self._rooms.keep_node(node.metadata.name)
        else:
            self._rooms.note_node(node.metadata.name, {})  # a former Node of its name may count there
        if not self._taints or config is None or config.node_uid != node.metadata.uid:
            return None
        subnets = [each.subnet_name for each in config.status.network_containers]
        self._rooms.note_unread(node.metadata.name, subnets)
        is_full = is_refused(config) or any(map(self._rooms.is_full, subnets))
        if is_full == is_tainted(node):
            return None
        if is_full and (wait_seconds := self._wait_seconds(node.metadata.name)) > 0:
            return wait_seconds
        await self._context.writes.patch(node, taint_changes(node, tainted=is_full), unchanged=True)
        if is_full:
            self._lowered_at[node.metadata.name] = self._context.clock.monotonic()
        return None

    def _wait_seconds(self, name: str) -> float:
        """After how many seconds a number of the node may be lowered, or the node tainted."""
        lowered_at = self._lowered_at.get(name, -LOWER_EVERY_SECONDS)
        return lowered_at + LOWER_EVERY_SECONDS - self._context.clock.monotonic()

    def _forget(self, name: str) -> None:
        self._coverage.forget(name)
        self._rooms.note_node(name, {})
        self._written.pop(name, None)
        self._left.pop(name, None)
        self._lowered_at.pop(name, None)

    def _shown(self, node: Node) -> dict[str, int | None]:
        """What the Node publishes: as in the cache, or as written since."""
        written = self._written.get(node.metadata.name)
        shown = shown_by(node)
        if written is None or written.version != node.metadata.resource_version:
            return shown
        return {**shown, **written.numbers}

    def _note(self, demand: NodeDemand, numbers: Mapping[str, int | None]) -> None:
        """Note how the node counts in its subnets with these numbers."""
        entries = {}
        for resource, subnet in demand.subnets.items():
            if (reading := self._rooms.reading(subnet)) is not None:
                entries[subnet] = demand.entry(reading, numbers.get(resource))
        self._rooms.note_node(demand.config.metadata.name, entries)

    def _is_bound(self, name: str, resource: str, shown: int | None) -> bool:
        """Whether the node's pods were placed by that number: only this term has lowered it since it last looked."""
        left = self._left.get(name, {}).get(resource)
        return shown is not None and left is not None and shown >= left

    def _wanted(self, demand: NodeDemand, shown: Mapping[str, int | None]) -> _WantedNumbers:
        numbers, short_in = {}, []
        name = demand.config.metadata.name
        is_full = False
        for resource, subnet in demand.subnets.items():
            if (reading := self._rooms.reading(subnet)) is None:
                continue
            number = shown.get(resource)
            node = demand.published(reading, number, is_bound=self._is_bound(name, resource, number))
            left = self._rooms.left(subnet)
            numbers[resource] = decide_published(node, left)
            is_full |= has_no_room(node, left)
            if numbers[resource] < least_number(node, left.room):
                short_in.append(subnet)
        return _WantedNumbers(numbers, is_full, tuple(short_in))

    async def _write(self, node: Node, demand: NodeDemand, shown: Mapping[str, int | None]) -> float | None:
        """Write what is due. Returns after how many seconds the rest is."""
        name = node.metadata.name
        wanted = self._wanted(demand, shown)
        raised, lowered = _changes(shown, wanted.numbers)
        taints = wanted.is_full and self._taints
        closes = bool(lowered) or (taints and not is_tainted(node))
        wait_seconds = self._wait_seconds(name)
        waits = closes and wait_seconds > 0
        if changed := raised if waits else {**raised, **lowered}:
            # Other nodes are decided meanwhile: what is raised counts from now on, what is lowered once the cache shows it.
            self._note(demand, {**shown, **raised})
            decided_from = node.metadata.resource_version
            node = await self._context.writes.patch(node, resource_changes(changed), status=True)
            self._written[name] = _LastWrite(decided_from, {**shown, **changed})
        self._left[name] = {**shown, **changed}
        if self._taints and taints != is_tainted(node) and not (taints and waits):
            await self._context.writes.patch(node, taint_changes(node, tainted=taints), unchanged=True)
        if closes and not waits:
            self._lowered_at[name] = self._context.clock.monotonic()
        for subnet in wanted.short_in:
            self._rooms.note_short(name, subnet)
        return wait_seconds if waits else None


def _changes(
    shown: Mapping[str, int | None], wanted: Mapping[str, int]
) -> tuple[dict[str, int | None], dict[str, int | None]]:
    """The numbers to raise, and those to lower. A resource that the node has no addresses of any more is removed: None."""
    raised: dict[str, int | None] = {}
    lowered: dict[str, int | None] = {}
    for resource, number in wanted.items():
        before = shown.get(resource)
        if before is not None and number < before:
            lowered[resource] = number
        elif number != before:
            raised[resource] = number
    raised |= {
        resource: None for resource, before in shown.items() if before is not None and resource not in wanted
    }
    return raised, lowered
