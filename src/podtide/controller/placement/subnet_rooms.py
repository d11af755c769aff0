"""The room of every node of a subnet: decided when the subnet is read, and kept with what its nodes publish meanwhile.

A subnet is read every few seconds, and its nodes may be thousands. So they are looked at only when the room changed, and sums
over them are kept up to date node by node. A node that could not be raised as far as its room, because others still publish
what was theirs before, is looked at again with the next reading, or when an address can be had again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs

from podtide.allocator.subnets import SubnetDemandReport
from podtide.core.subnet.batch import SubnetDecision
from podtide.core.subnet.demand_by_batch import PodRange
from podtide.core.subnet.placement import (
    ClusterSums,
    PublishedNode,
    RoomLeft,
    SubnetRoom,
    decide_room,
    is_lowering,
    others_of,
    room_left,
)


class NodeMaximum(Struct, frozen=True):
    """How many pods of a node can have an address, by its kubelet and by the largest pool that it may have."""

    pods: int
    addresses: int

    @property
    def usable(self) -> int:
        """The smaller of the two."""
        return min(self.pods, self.addresses)


class NodeEntry(Struct, frozen=True, kw_only=True):
    """A node as it counts in its subnet."""

    pods: PodRange
    number: int
    """What it publishes, and its pods that request nothing."""
    maximum: NodeMaximum
    node: PublishedNode
    """It as the rule takes it."""


class RoomReading(Struct, frozen=True, kw_only=True):
    """A subnet as last read, and the room that was decided."""

    room: int
    batch: int
    top: int
    """By which statements are read."""
    is_tight: bool
    """Whether windows of demand are too wide to tell whether every node can have one pod more, and no batch will narrow them."""
    subnet: SubnetRoom
    others: PodRange


class _SubnetNodes:
    """The nodes of this cluster in a subnet, and sums over them."""

    def __init__(self) -> None:
        self._entries: dict[str, NodeEntry] = {}
        self._pods = PodRange(0, 0)
        self._numbers = 0
        self._room = 0
        self._lowering: set[str] = set()
        self.short: set[str] = set()
        """Nodes that publish less than their room."""
        self.saved = 0
        """By how much their maxima are smaller than the allocator knows: it does not know kubelets' own."""

    def take_room(self, room: int) -> None:
        """Take in the room that the nodes have now."""
        self._room = room
        self._lowering = {name for name, entry in self._entries.items() if is_lowering(entry.node, room)}

    def note(self, node: str, entry: NodeEntry | None) -> None:
        self.short.discard(node)
        self._lowering.discard(node)
        if (before := self._entries.pop(node, None)) is not None:
            self._add(before, -1)
        if entry is not None:
            self._entries[node] = entry
            self._add(entry, 1)
            if is_lowering(entry.node, self._room):
                self._lowering.add(node)

    def keep(self, node: str) -> None:
        """Count on nothing from a node that is not lowered, because it is not known what pods it has."""
        if (entry := self._entries.get(node)) is not None:
            self.note(node, structs.replace(entry, node=structs.replace(entry.node, shown=None)))

    def _add(self, entry: NodeEntry, sign: int) -> None:
        self._pods = _sum(self._pods, entry.pods, sign)
        self._numbers += sign * entry.number
        self.saved += sign * (entry.maximum.addresses - entry.maximum.usable)

    @property
    def names(self) -> Iterable[str]:
        return self._entries.keys()

    @property
    def sums(self) -> ClusterSums:
        return ClusterSums(
            nodes=len(self._entries),
            pods=self._pods,
            numbers=self._numbers,
            is_lowering=bool(self._lowering),
        )


def _sum(one: PodRange, other: PodRange, sign: int) -> PodRange:
    return PodRange(one.least + sign * other.least, one.most + sign * other.most)


class SubnetRooms:
    """The rooms of all subnets of this cluster's nodes."""

    def __init__(self, queue: Callable[[str], None], users: Callable[[str], Iterable[str]]) -> None:
        """`queue` is called with nodes that may have to publish another number; `users` are the nodes of a subnet."""
        self._queue = queue
        self._users = users
        self._readings: dict[str, RoomReading] = {}
        self._nodes: defaultdict[str, _SubnetNodes] = defaultdict(_SubnetNodes)
        self._unread: defaultdict[str, set[str]] = defaultdict(set)
        """Nodes that were looked at before their subnet was read, by subnet: a new leader does not know all users by then."""

    def reading(self, subnet: str) -> RoomReading | None:
        """The subnet as last read; None until then."""
        return self._readings.get(subnet)

    def is_full(self, subnet: str) -> bool:
        """Whether no node of the subnet can have another address; False for one that was not read yet."""
        return (reading := self._readings.get(subnet)) is not None and not reading.room

    def left(self, subnet: str) -> RoomLeft:
        """What a node of the subnet, which was read, may publish."""
        reading = self._readings[subnet]
        return room_left(reading.room, reading.subnet, reading.others, self._nodes[subnet].sums)

    def note_unread(self, node: str, subnets: Iterable[str]) -> None:
        """Have a node looked at again once those of the subnets are read that were not yet."""
        for subnet in subnets:
            if subnet not in self._readings:
                self._unread[subnet].add(node)

    def note_node(self, node: str, entries: Mapping[str, NodeEntry]) -> None:
        """Note how a node counts in its subnets; in none if it is gone."""
        for subnet in entries.keys() | self._nodes.keys():
            had_one = self._has_one(subnet)
            self._nodes[subnet].note(node, entries.get(subnet))
            if not had_one and self._has_one(subnet):
                self._queue_all(self._nodes[subnet].short)

    def keep_node(self, node: str) -> None:
        """Note that what a node publishes stays as it is until its agent says more."""
        for nodes in self._nodes.values():
            nodes.keep(node)

    def note_short(self, node: str, subnet: str) -> None:
        """Note that a node publishes less than its room."""
        self._nodes[subnet].short.add(node)

    def note_subnet(self, demand: SubnetDemandReport, decision: SubnetDecision) -> SubnetRoom:
        """Decide the room anew from what was read of a subnet."""
        subnet, nodes = demand.subnet, self._nodes[demand.subnet.name]
        by_allocator = sum((1 + alike.stated.max_ips) * alike.containers for alike in demand.alike)
        read = SubnetRoom(
            capacity=subnet.capacity,
            reserved=decision.without_reserve,
            pods=decision.pods,
            containers=subnet.containers,
            maxima=subnet.quarantined + by_allocator - nodes.saved,
        )
        before = self._readings.get(subnet.name)
        now = RoomReading(
            room=decide_room(before.room if before else None, read),
            batch=decision.scaler.batch,
            top=subnet.in_force.top,
            is_tight=read.at_least < read.containers and not decision.unanswered,
            subnet=read,
            others=others_of(read, nodes.sums),
        )
        self._readings[subnet.name] = now
        is_new = before is None or before.room != now.room
        if is_new:
            nodes.take_room(now.room)
        unread = self._unread.pop(subnet.name, set())
        self._queue_all({*unread, *nodes.names, *self._users(subnet.name)} if is_new else nodes.short)
        return read

    def forget(self, subnet: str) -> None:
        """Forget a subnet that no node uses any more."""
        self._readings.pop(subnet, None)
        self._nodes.pop(subnet, None)
        self._unread.pop(subnet, None)

    def _has_one(self, subnet: str) -> bool:
        return subnet in self._readings and self.left(subnet).for_one

    def _queue_all(self, nodes: Iterable[str]) -> None:
        for node in sorted(nodes):
            self._queue(node)
