"""How many pods a node is said to have addresses for, so that a scheduler places pods where they can have one.

A node publishes one number, the pods that it could have addresses for in all. A scheduler subtracts the pods that are bound
there, and places no pod where nothing is left. What is left is the node's room. How large rooms may be follows from what can
be had of the subnet with nothing kept in reserve (batch 1, buffer 0): addresses that are free count, and so do those that
nodes hold idle and would give back. Else pods would stay unscheduled, no node would be owed, and nothing would be given back.

    a⁺ = Q - R⁻     at most so many more pods can have an address
    a⁻ = Q - R⁺     at least so many (they differ while nodes state windows of demand, see `demand_by_batch`)

Below the top rung a node states its demand anew only once it has rested. Till then it may have any number of pods that leads to
the same request, so no number is lowered below the most of these; and none is raised by them, or the sum would exceed P.

    room L of every node:    0                           a⁺ ≤ 0: no address can be had
                             a power of two, N·L ≤ a⁻    so all rooms together can be filled
                             1                           at least, while a⁺ ≥ 1
                             unlimited                   every node's maximum fits at once

At least 1, because a pod may fit on one node alone, and pods wait for ever where every address that can be had is shown
by other nodes. So pods without an address number at most one per node. And never less than the pods that are there: a
kubelet refuses what exceeds the number, after a restart also pods that run.

A node's number is kept while its room is between a quarter of L and L: a pod that starts within what was published changes
nothing, since room and a⁻ shrink alike. A smaller L is taken at once, a larger one when a third more can be had than it takes, or
numbers would change with every pod at a boundary. Where every maximum fits, the number is the maximum, which is constant.

Numbers are lowered later than they are raised, and nodes fill at different times. So a number is raised beyond the one pod
only by what the numbers of all nodes leave of P, the pods that the subnet has addresses for, and to the one pod only while that makes
the sum no more than P + N. So the sum is at most P + N, however old what is known of the pods. A node that has used up its number waits
for that one pod only while others publish more than they should and are about to be lowered: pods that fit there go there meanwhile.

U⁺ may be the end of a window, as wide as the batch. Nothing is raised by that, or the sum would exceed P by all windows. So where only
a window is known, a number is no longer U⁺ + 1 at least, but no less than the node has pods by what it stated and published: pods that
request an address are placed by the number, and cannot be more. What the numbers leave of P is given by U⁺ as ever. No pod waits for
long because of that: where a window is too wide for the one pod (a⁻ < N), the batch is lowered with the same reading, and all nodes state
their demand within a moment. Where the batch is not lowered (a person pinned it, or nodes keep nothing free), the end of the window counts.
"""

from msgspec import Struct, structs

from podtide.core.subnet.demand_by_batch import PodRange, ReservedRange

UNLIMITED = 2**53
"""The room of nodes in a subnet in which every node's maximum fits at once."""

LOWER_EVERY_SECONDS = 30.0
"""A node's number is lowered no more often than this: each time, a pod that was just bound may be refused by its kubelet."""

_LEAST_PART = 4
"""Rooms may shrink to this part of L before the number is raised."""
_MARGIN = 4, 3
"""For a larger L, as much must be had as it takes times this fraction."""


class SubnetRoom(Struct, frozen=True, kw_only=True):
    """What of a subnet decides the room of its nodes."""

    capacity: int
    """Q. What pods have of CIDRs that drain is in it, as it is in what is reserved."""
    reserved: ReservedRange
    """R⁻ and R⁺ with nothing kept in reserve."""
    pods: PodRange
    """How many pods that is for, of all clusters that share the subnet."""
    containers: int
    """N, of all of them as well."""
    maxima: int
    """What would be reserved if every node had as many pods as it can have."""

    @property
    def at_most(self) -> int:
        """The value of a⁺: at most so many more pods can have an address."""
        return self.capacity - self.reserved.least

    @property
    def at_least(self) -> int:
        """The value of a⁻: at least so many can."""
        return self.capacity - self.reserved.most

    @property
    def is_full(self) -> bool:
        """Whether no address can be had, even if nodes keep nothing in reserve."""
        return self.at_most <= 0


class ClusterSums(Struct, frozen=True, kw_only=True):
    """The nodes of one cluster in a subnet, summed up."""

    nodes: int
    pods: PodRange
    numbers: int
    """What they publish, and pods there that request nothing."""
    is_lowering: bool = False
    """Whether some of them publish more than they should."""


class RoomLeft(Struct, frozen=True, kw_only=True):
    """What a node's number may be raised to."""

    room: int
    """L"""
    for_one: bool
    """Whether one more pod can have an address, by what is known now, and a number may be raised for it whatever others publish."""
    unpublished: int
    """What the numbers of all nodes leave of P; less than 0 where they exceed it."""


class PublishedNode(Struct, frozen=True, kw_only=True):
    """What of a node decides its number."""

    pods: int
    """U⁺: at most as many pods need an address there."""
    least_pods: int = 0
    """U⁻: at least as many."""
    possible_pods: int = 0
    """As many could be there without another request: what was published for them is not taken back."""
    maximum: int
    """As many pods can have one there, whatever the subnet has."""
    unrequested: int = 0
    """Of the pods, those for which a scheduler subtracts nothing, because they request none; less than 0 where pods request
    more than they use."""
    shown: int | None = None
    """What the node publishes now."""
    placed_pods: int | None = None
    """Where U⁺ is the end of a window: at most as many by what it stated last and published since; None where that is not known."""
    is_outdated: bool = False
    """Whether another batch came into force, and the node has still to state its demand anew."""


def decide_room(before: int | None, subnet: SubnetRoom) -> int:
    """L, given what it was before; None where that is not known."""
    if subnet.is_full:
        return 0
    if subnet.maxima <= subnet.capacity:
        return UNLIMITED
    largest = _power_of_two(subnet.at_least, subnet.containers)
    if before is None or before >= largest:
        return largest
    times, of = _MARGIN
    return max(before, _power_of_two(subnet.at_least * of, subnet.containers * times))


def others_of(subnet: SubnetRoom, cluster: ClusterSums) -> PodRange:
    """The pods of other clusters in a reading, given this cluster's nodes at the time."""
    if subnet.containers <= cluster.nodes:
        return PodRange(0, 0)
    least, most = subnet.pods.least - cluster.pods.least, subnet.pods.most - cluster.pods.most
    return PodRange(max(0, least), max(0, most))


def room_left(room: int, subnet: SubnetRoom, others: PodRange, cluster: ClusterSums) -> RoomLeft:
    """What a node of the cluster may publish: by the last reading of the subnet, and by its own nodes as they are now.

    Clusters that share a subnet share what can be had by their numbers of nodes.
    """
    least = subnet.at_least + subnet.pods.most - others.most - cluster.pods.most
    share = least * min(cluster.nodes, subnet.containers) // max(1, subnet.containers)
    most = subnet.at_most + subnet.pods.least - others.least - cluster.pods.least
    unpublished = cluster.pods.most + share - cluster.numbers
    may_exceed = unpublished > -cluster.nodes or not cluster.is_lowering
    return RoomLeft(room=room, for_one=most > 0 and may_exceed, unpublished=unpublished)


def decide_published(node: PublishedNode, left: RoomLeft) -> int:
    """The number that the node publishes."""
    node = _as_known(node)
    highest = _with_room(node, left.room)
    shown = 0 if node.shown is None else node.shown + node.unrequested
    if node.shown is not None and least_number(node, left.room) <= node.shown and shown <= highest:
        return node.shown
    if shown > highest:
        number = min(shown, _highest_kept(node, left.room))
    else:
        number = max(_needed(node, left), min(highest, shown + max(0, left.unpublished)))
    return max(0, number - node.unrequested)


def least_number(node: PublishedNode, room: int) -> int:
    """What the node publishes at least once it could be raised as far as its room."""
    return max(0, _with_room(node, max(1, room // _LEAST_PART) if room else 0) - node.unrequested)


def is_lowering(node: PublishedNode, room: int) -> bool:
    """Whether the node publishes more than it should, and is lowered as soon as it may be."""
    return node.shown is not None and node.shown > max(0, _highest_kept(node, room) - node.unrequested)


def has_no_room(node: PublishedNode, left: RoomLeft) -> bool:
    """Whether no further pod can have an address on the node."""
    return not left.room or node.least_pods >= node.maximum


def _needed(node: PublishedNode, left: RoomLeft) -> int:
    """What the node has addresses for at least, whatever others publish: one pod more, where its pods are known."""
    if node.is_outdated or node.placed_pods is not None:
        return _placed(node)
    return _with_room(node, 1 if left.for_one and left.room else 0)


def _as_known(node: PublishedNode) -> PublishedNode:
    """The node with no more pods than it stated last or had published, if it is about to state its demand anew."""
    return structs.replace(node, pods=_placed(node)) if node.is_outdated else node


def _placed(node: PublishedNode) -> int:
    """The pods that are there at most, by all that is known."""
    return node.pods if node.placed_pods is None else min(node.pods, node.placed_pods)


def _highest_kept(node: PublishedNode, room: int) -> int:
    """The most pods that a node publishes addresses for without being lowered."""
    return max(_with_room(_as_known(node), room), node.possible_pods)


def _with_room(node: PublishedNode, room: int) -> int:
    """How many pods it has addresses for with that room: up to its maximum, and no less than it has pods."""
    return max(node.pods, min(node.maximum, node.pods + room))


def _power_of_two(addresses: int, nodes: int) -> int:
    """The largest power of two that every node can have of so many addresses, and at least 1."""
    share = max(1, addresses // max(1, nodes))
    return int(1 << (share.bit_length() - 1))
