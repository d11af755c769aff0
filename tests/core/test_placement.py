"""Laws of the number that a node publishes for schedulers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podtide.core.subnet.demand_by_batch import PodRange, ReservedRange, window_of
from podtide.core.subnet.placement import (
    UNLIMITED,
    ClusterSums,
    PublishedNode,
    RoomLeft,
    SubnetRoom,
    decide_published,
    decide_room,
    has_no_room,
    is_lowering,
    least_number,
    others_of,
    room_left,
)
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at, stated_demand

MAXIMUM = 30
NO_OTHERS = PodRange(0, 0)


def subnet_of(capacity: int, pods: list[int], unsure: int = 0) -> SubnetRoom:
    """A subnet whose nodes have so many pods, and may have up to `unsure` fewer each."""
    nodes, most = len(pods), sum(pods)
    least = most - unsure * nodes
    return SubnetRoom(
        capacity=capacity,
        reserved=ReservedRange(nodes + least, nodes + most),
        pods=PodRange(least, most),
        containers=nodes,
        maxima=nodes + MAXIMUM * nodes,
    )


class Cluster:
    """Nodes that publish by what the controller knows, which may be old, and a scheduler that reads their numbers."""

    def __init__(self, capacity: int, pods: list[int]) -> None:
        self.capacity = capacity
        self.pods = pods
        self.stated = list(pods)
        self.numbers: list[int | None] = [None] * len(pods)
        self.read()

    def read(self) -> None:
        self.subnet = subnet_of(self.capacity, list(self.stated))
        self.room = decide_room(getattr(self, "room", None), self.subnet)

    def publish(self, index: int) -> int:
        left = room_left(self.room, self.subnet, NO_OTHERS, self.sums)
        node = PublishedNode(pods=self.stated[index], maximum=MAXIMUM, shown=self.numbers[index])
        self.numbers[index] = number = decide_published(node, left)
        return number

    @property
    def sums(self) -> ClusterSums:
        pods = sum(self.stated)
        range_ = PodRange(pods, pods)
        return ClusterSums(
            nodes=len(self.stated),
            pods=range_,
            numbers=sum(each or 0 for each in self.numbers),
        )

    @property
    def can_have(self) -> int:
        """P: the pods that the subnet has addresses for."""
        return self.capacity - len(self.pods)

    def open_nodes(self) -> list[int]:
        return [index for index, count in enumerate(self.pods) if count < (self.numbers[index] or 0)]


def published(capacity: int, pods: list[int]) -> list[int]:
    cluster = Cluster(capacity, pods)
    return [cluster.publish(index) for index in range(len(pods))]


clusters = st.lists(st.integers(0, MAXIMUM), min_size=1, max_size=8)


def test_a_subnet_in_which_every_maximum_fits_publishes_maxima_whatever_the_pods() -> None:
    for pods in ([0, 0], [30, 1], [17, 29]):
        assert published(62, pods) == [30, 30]


def test_with_one_address_less_the_rooms_are_shared() -> None:
    # 61 - 2 - 20 = 39 can be had: 19 each, and 16 is the power of two.
    assert published(61, [10, 10]) == [26, 26]


@given(clusters, st.integers(0, 300))
def test_all_rooms_together_can_be_filled_but_for_one_per_node(pods: list[int], capacity: int) -> None:
    numbers = published(capacity, pods)
    can_be_had = capacity - len(pods) - sum(pods)
    assert sum(numbers) - sum(pods) <= max(0, can_be_had) + len(pods)


@given(clusters, st.integers(0, 300))
def test_while_an_address_can_be_had_every_node_has_room_for_a_pod(pods: list[int], capacity: int) -> None:
    can_be_had = capacity - len(pods) - sum(pods)
    for number, count in zip(published(capacity, pods), pods, strict=True):
        if can_be_had >= 1:
            assert number >= min(MAXIMUM, count + 1)
        else:
            assert number == count


counts = st.integers(0, 40)
ranges = st.builds(lambda least, more: (least, least + more), counts, st.one_of(st.just(0), counts))
subnets = st.builds(
    SubnetRoom,
    capacity=counts,
    reserved=ranges.map(lambda ends: ReservedRange(*ends)),
    pods=ranges.map(lambda ends: PodRange(*ends)),
    containers=st.integers(1, 4),
    maxima=st.integers(0, 60),
)
rooms = st.sampled_from([0, 1, 2, 4, 8, 64, UNLIMITED])


@given(st.one_of(st.none(), rooms), subnets)
def test_a_room_is_the_largest_power_of_two_for_which_there_is_enough(
    before: int | None, subnet: SubnetRoom
) -> None:
    room, share = decide_room(before, subnet), Fraction(subnet.at_least, subnet.containers)
    if subnet.capacity <= subnet.reserved.least:
        assert room == 0
    elif subnet.maxima <= subnet.capacity:
        assert room == UNLIMITED
    else:
        assert room.bit_count() == 1
        enough = room if before is None or room <= before else Fraction(room * 4, 3)
        enough_for_more = 2 * room if before is None or room < before else Fraction(2 * room * 4, 3)
        assert room == 1 or enough <= share
        assert share < enough_for_more


@given(subnets, st.integers(1, 20), ranges, st.one_of(st.integers(-3, 3), counts), st.booleans())
def test_the_only_cluster_of_a_subnet_may_publish_what_pods_can_have_and_one_for_each_node_beside_it(
    subnet: SubnetRoom, nodes: int, pods: tuple[int, int], more: int, is_lowering: bool
) -> None:
    subnet = structs.replace(subnet, containers=nodes)
    can_have = subnet.capacity - (subnet.reserved.most - subnet.pods.most)
    numbers = can_have + nodes + more
    known = ClusterSums(nodes=nodes, pods=PodRange(*pods), numbers=numbers, is_lowering=is_lowering)
    assert others_of(subnet, known) == NO_OTHERS
    left = room_left(4, subnet, NO_OTHERS, known)
    assert left.unpublished == can_have - numbers
    might_have = subnet.capacity - (subnet.reserved.least - subnet.pods.least)
    assert left.for_one == (pods[0] < might_have and (numbers < can_have + nodes or not is_lowering))


@given(subnets, st.integers(1, 20), st.integers(1, 20), ranges, ranges)
def test_what_clusters_that_share_a_subnet_may_publish_together_is_what_pods_can_have(
    subnet: SubnetRoom, nodes: int, other_nodes: int, pods: tuple[int, int], other_pods: tuple[int, int]
) -> None:
    ends = zip(pods, other_pods, strict=True)
    subnet = structs.replace(subnet, containers=nodes + other_nodes, pods=PodRange(*map(sum, ends)))
    one = ClusterSums(nodes=nodes, pods=PodRange(*pods), numbers=0)
    other = ClusterSums(nodes=other_nodes, pods=PodRange(*other_pods), numbers=0)
    assert others_of(subnet, one) == other.pods
    lefts = [room_left(4, subnet, others_of(subnet, each), each) for each in (one, other)]
    may_publish = sum(left.unpublished for left in lefts)
    assert may_publish <= subnet.at_least + subnet.pods.most < may_publish + len(lefts)
    for left, each in zip(lefts, (one, other), strict=True):
        share = Fraction(subnet.at_least * each.nodes, nodes + other_nodes)
        assert 0 <= each.pods.most + share - left.unpublished < 1
        assert left.for_one == (subnet.at_most > 0)
    more = structs.replace(one, pods=PodRange(pods[0] + 3, pods[1] + 3))  # since the subnet was read
    taken = room_left(4, subnet, other.pods, more)
    assert taken.for_one == (subnet.at_most > 3)
    assert 0 <= taken.unpublished - lefts[0].unpublished <= 3


@given(subnets, st.integers(0, 20), ranges)
def test_other_clusters_have_no_less_than_no_pods(
    subnet: SubnetRoom, nodes: int, pods: tuple[int, int]
) -> None:
    others = others_of(subnet, ClusterSums(nodes=nodes, pods=PodRange(*pods), numbers=0))
    assert min(others.least, others.most) >= 0


rooms_left = st.builds(
    RoomLeft,
    room=rooms,
    for_one=st.booleans(),
    unpublished=st.integers(-20, 100),
)
nodes = st.builds(
    PublishedNode,
    pods=st.integers(0, 60),
    possible_pods=st.integers(0, 80),
    maximum=st.integers(1, 80),
    unrequested=st.integers(-3, 10),
    shown=st.one_of(st.none(), st.integers(0, 120)),
)
"""Nodes whose pods are known."""
windows = st.builds(
    structs.replace,
    nodes,
    shown=st.integers(0, 120),
    placed_pods=st.integers(0, 60),
    is_outdated=st.booleans(),
)
"""Nodes of which a window is known, and what was placed there."""
all_nodes = st.one_of(nodes, windows)


class Decided:
    """What is decided for a node, in pods: those without a request are added to what it publishes."""

    def __init__(self, node: PublishedNode, left: RoomLeft) -> None:
        self.number = decide_published(node, left)
        self.pods_there = node.pods if node.placed_pods is None else min(node.pods, node.placed_pods)
        """As many are there at most, by all that is known."""
        counted = self.pods_there if node.is_outdated else node.pods
        self.highest = max(counted, min(node.maximum, counted + left.room))
        """With all its room."""
        self.lowest = max(counted, min(node.maximum, counted + min(left.room, max(1, left.room // 4))))
        """With the least part of its room that it is left with."""
        self.shown = 0 if node.shown is None else node.shown + node.unrequested
        self.pods = max(self.number + node.unrequested, 0)
        """What it decided, unless that was less than pods without a request."""
        self.is_cut = not self.number
        """Whether it may have been."""


@given(all_nodes, rooms_left)
def test_never_less_is_published_than_pods_there_request(node: PublishedNode, left: RoomLeft) -> None:
    decided = Decided(node, left)
    assert decided.number >= max(0, decided.pods_there - node.unrequested)


@given(all_nodes, rooms_left)
def test_never_more_is_published_than_the_room_allows_or_was_published_before(
    node: PublishedNode, left: RoomLeft
) -> None:
    decided = Decided(node, left)
    assert decided.is_cut or decided.pods <= max(decided.highest, decided.shown)


@given(all_nodes, rooms_left)
def test_a_number_is_lowered_to_the_room_but_not_below_the_pods_that_could_be_there(
    node: PublishedNode, left: RoomLeft
) -> None:
    decided = Decided(node, left)
    if node.shown is not None and decided.shown > decided.highest:
        lowered = min(decided.shown, max(decided.highest, node.possible_pods))
        assert decided.number == max(0, lowered - node.unrequested)
    else:
        assert node.shown is None or decided.number >= node.shown


@given(all_nodes, rooms_left)
def test_a_number_is_kept_while_a_quarter_of_the_room_is_left(node: PublishedNode, left: RoomLeft) -> None:
    decided = Decided(node, left)
    assert least_number(node, left.room) >= 0
    if node.shown is not None and decided.lowest <= decided.shown <= decided.highest:
        assert decided.number == node.shown


@given(nodes, rooms_left)
def test_while_an_address_can_be_had_a_node_with_no_room_gets_one_more_than_its_pods(
    node: PublishedNode, left: RoomLeft
) -> None:
    decided = Decided(node, left)
    if left.for_one and left.room and node.pods < node.maximum:
        assert decided.number >= max(0, node.pods + 1 - node.unrequested)


@given(all_nodes, rooms_left)
def test_a_number_is_raised_by_what_others_leave_and_beyond_it_to_the_one_pod_alone(
    node: PublishedNode, left: RoomLeft
) -> None:
    """Of a window not even that: it may be as wide as a batch."""
    decided = Decided(node, left)
    one = left.for_one and left.room > 0 and node.placed_pods is None and node.pods < node.maximum
    given_anyway = decided.pods_there + one
    given_at_most = max(decided.shown, given_anyway, decided.shown + left.unpublished)
    assert decided.is_cut or decided.pods <= given_at_most
    if decided.shown < decided.lowest or (node.shown is None and decided.shown <= decided.highest):
        assert decided.number == max(
            0, max(given_anyway, min(decided.highest, given_at_most)) - node.unrequested
        )


@given(nodes, rooms_left)
def test_what_was_published_is_left_if_nothing_else_changes(node: PublishedNode, left: RoomLeft) -> None:
    number = decide_published(node, left)
    taken = number - (0 if node.shown is None else node.shown)
    after = structs.replace(left, unpublished=left.unpublished - max(taken, 0))
    if number >= least_number(node, left.room):
        assert decide_published(structs.replace(node, shown=number), after) == number


@given(all_nodes, rooms_left)
def test_a_node_is_said_to_be_lowering_exactly_if_it_is_to_publish_less(
    node: PublishedNode, left: RoomLeft
) -> None:
    is_lowered = node.shown is not None and decide_published(node, left) < node.shown
    assert is_lowering(node, left.room) == is_lowered


@given(nodes, rooms_left)
def test_a_node_publishes_less_than_its_room_exactly_if_it_would_be_raised_were_it_not_for_others(
    node: PublishedNode, left: RoomLeft
) -> None:
    roomier = structs.replace(left, for_one=True, unpublished=UNLIMITED)
    is_raised = node.shown is None or decide_published(node, roomier) > node.shown
    if node.shown is not None:
        assert (node.shown < least_number(node, left.room)) == is_raised


@given(st.builds(structs.replace, nodes, least_pods=st.integers(0, 60)), rooms_left)
def test_a_node_has_no_room_if_none_is_left_or_its_maximum_is_reached_by_the_least_pods_it_has(
    node: PublishedNode, left: RoomLeft
) -> None:
    assert has_no_room(node, left) == (left.room == 0 or node.maximum <= node.least_pods)


def roomy(room: int) -> RoomLeft:
    return RoomLeft(room=room, for_one=room > 0, unpublished=UNLIMITED)


def test_pods_without_a_request_are_deducted_since_a_scheduler_does_not_see_them() -> None:
    assert decide_published(PublishedNode(pods=10, maximum=30, unrequested=4), roomy(8)) == 14
    assert decide_published(PublishedNode(pods=10, maximum=30, unrequested=-2), roomy(8)) == 20


def test_a_pod_that_starts_within_what_was_published_changes_nothing() -> None:
    node = PublishedNode(pods=10, maximum=100, shown=26)
    kept = [decide_published(structs.replace(node, pods=pods), roomy(16)) for pods in range(10, 23)]
    assert set(kept) == {26}  # while a quarter of the room is left
    assert decide_published(structs.replace(node, pods=23), roomy(16)) == 39


def test_a_node_with_more_room_than_the_others_is_lowered() -> None:
    assert decide_published(PublishedNode(pods=9, maximum=100, shown=26), roomy(16)) == 25


def test_what_pods_could_have_taken_without_another_statement_is_not_taken_back() -> None:
    node = PublishedNode(pods=1, possible_pods=4, maximum=100, shown=9)
    assert decide_published(node, roomy(2)) == 4
    assert decide_published(structs.replace(node, shown=2), roomy(2)) == 2


def test_a_node_above_its_maximum_publishes_its_pods_until_they_are_fewer() -> None:
    assert decide_published(PublishedNode(pods=33, maximum=30), roomy(4)) == 33
    assert decide_published(PublishedNode(pods=29, maximum=30, shown=33), roomy(4)) == 30


def test_what_others_publish_limits_how_far_a_node_is_raised_but_for_one_pod() -> None:
    node = PublishedNode(pods=10, maximum=100, shown=10)
    assert decide_published(node, RoomLeft(room=16, for_one=True, unpublished=5)) == 15
    assert decide_published(node, RoomLeft(room=16, for_one=True, unpublished=-3)) == 11
    assert decide_published(node, RoomLeft(room=16, for_one=False, unpublished=0)) == 10
    assert least_number(node, 16) == 14  # so it is raised further when others are lowered


def test_a_window_that_a_node_is_about_to_narrow_raises_nothing() -> None:
    node = PublishedNode(pods=12, maximum=100, shown=9, placed_pods=9, is_outdated=True)
    full = RoomLeft(room=4, for_one=True, unpublished=0)
    assert decide_published(node, full) == 9
    assert decide_published(structs.replace(node, placed_pods=None, is_outdated=False), full) == 13
    assert decide_published(structs.replace(node, placed_pods=10), full) == 10  # it has no less than it said
    assert decide_published(structs.replace(node, shown=None, placed_pods=None), full) == 12
    assert (
        decide_published(node, structs.replace(full, unpublished=3)) == 12
    )  # what others leave is another matter


def test_the_end_of_a_window_raises_nothing_but_what_others_leave_is_given_by_it() -> None:
    node = PublishedNode(pods=72, least_pods=57, maximum=250, shown=63, placed_pods=63)
    assert decide_published(node, RoomLeft(room=32, for_one=True, unpublished=-1)) == 63
    assert decide_published(node, RoomLeft(room=32, for_one=True, unpublished=30)) == 93
    assert decide_published(node, RoomLeft(room=32, for_one=True, unpublished=90)) == 104


def test_the_one_pod_is_given_beyond_what_others_leave_while_the_sum_exceeds_it_by_one_per_node() -> None:
    subnet = subnet_of(104, [30, 30, 20])  # 101 pods have addresses, 21 more than there are
    sums = ClusterSums(nodes=3, pods=PodRange(80, 80), numbers=103, is_lowering=True)
    assert room_left(4, subnet, NO_OTHERS, sums) == RoomLeft(room=4, for_one=True, unpublished=-2)
    more = structs.replace(sums, numbers=104)
    assert not room_left(4, subnet, NO_OTHERS, more).for_one
    assert room_left(4, subnet, NO_OTHERS, structs.replace(more, is_lowering=False)).for_one


def test_a_node_has_no_room_in_a_full_subnet_and_at_its_maximum() -> None:
    assert has_no_room(PublishedNode(pods=3, maximum=30), roomy(0))
    assert has_no_room(PublishedNode(pods=30, least_pods=30, maximum=30), roomy(8))
    assert not has_no_room(PublishedNode(pods=30, least_pods=29, maximum=30), roomy(1))


def test_a_larger_room_is_taken_only_when_a_third_more_can_be_had_than_it_takes() -> None:
    def room(before: int | None, can_be_had: int) -> int:
        reserved = ReservedRange(1000 - can_be_had, 1000 - can_be_had)
        subnet = SubnetRoom(capacity=1000, reserved=reserved, pods=PodRange(0, 0), containers=10, maxima=9999)
        return decide_room(before, subnet)

    assert room(None, 80) == 8
    assert room(4, 80) == 4
    assert room(4, 106) == 4
    assert room(4, 107) == 8
    assert room(8, 79) == 4
    assert room(4, 9) == 1
    assert room(1, 0) == 0
    assert room(0, 1) == 1
    assert room(UNLIMITED, 80) == 8
    assert room(4, 400) == 16  # up to what the margin allows, in one step


def test_windows_of_demand_leave_a_subnet_open_as_long_as_an_address_might_be_had() -> None:
    assert decide_room(1, subnet_of(18, [8, 8])) == 0
    assert decide_room(1, subnet_of(18, [8, 8], unsure=2)) == 1


def test_clusters_share_what_can_be_had_by_their_numbers_of_nodes() -> None:
    subnet = subnet_of(104, [10, 10, 20, 20])  # 40 can be had
    mine = ClusterSums(nodes=1, pods=PodRange(10, 10), numbers=12)
    others = others_of(subnet, mine)
    assert others == PodRange(50, 50)
    assert room_left(8, subnet, others, mine) == RoomLeft(room=8, for_one=True, unpublished=8)
    more_pods = ClusterSums(nodes=1, pods=PodRange(50, 50), numbers=50)
    assert room_left(8, subnet, others, more_pods) == RoomLeft(room=8, for_one=False, unpublished=0)


def test_the_only_cluster_of_a_subnet_has_all_of_it_however_old_the_reading() -> None:
    subnet = subnet_of(40, [5, 5])
    mine = ClusterSums(nodes=2, pods=PodRange(30, 30), numbers=34)
    assert others_of(subnet, mine) == NO_OTHERS
    assert others_of(subnet, structs.replace(mine, pods=PodRange(3, 3))) == NO_OTHERS
    assert room_left(4, subnet, NO_OTHERS, mine) == RoomLeft(room=4, for_one=True, unpublished=4)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 60), st.data())
def test_a_scheduler_that_reads_the_numbers_places_every_pod_that_can_have_an_address(
    pods: list[int], capacity: int, data: st.DataObject
) -> None:
    """Pods are bound one by one where there is room; statements, readings and numbers follow only now and then."""
    cluster = Cluster(capacity, pods)
    at_start, limit = sum(pods), max(sum(pods), cluster.can_have) + len(pods)
    steps = st.sampled_from(["bind", "bind", "state", "read", "publish", "publish", "end"])
    indexes = st.integers(0, len(pods) - 1)
    for _ in range(data.draw(st.integers(0, 40))):
        step, index = data.draw(steps), data.draw(indexes)
        if step == "bind" and pods[index] < (cluster.numbers[index] or 0):
            pods[index] += 1
        elif step == "end" and pods[index]:
            pods[index] -= 1
            cluster.stated[index] = pods[index]  # its address is free only once its agent has said so
        elif step == "state":
            cluster.stated[index] = pods[index]
        elif step == "read":
            cluster.read()
        elif step == "publish":
            cluster.publish(index)
        assert sum(pods) <= max(limit, at_start)
    for _ in range(300):
        cluster.stated = list(pods)
        cluster.read()
        for index in range(len(pods)):
            cluster.publish(index)
        if not (open_nodes := cluster.open_nodes()):
            break
        pods[open_nodes[0]] += 1
    assert sum(pods) >= min(cluster.can_have, MAXIMUM * len(pods))
    assert sum(pods) <= max(limit, at_start)


TOP = 16
MOST_PODS = 60
HALF = Fraction(1, 2)


class StatingCluster:
    """A cluster whose agents state their demand as they do: with each request, and anew only below the largest batch.

    The batch goes down when requests exceed nine tenths of the subnet, and every node answers in its own time.
    """

    def __init__(self, capacity: int, nodes: int) -> None:
        self.capacity = capacity
        self.batch = TOP
        self.pods = [0] * nodes
        self.numbers: list[int | None] = [None] * nodes
        self.statements = [self._statement(0)] * nodes
        self.room: int | None = None
        self.read()

    @property
    def can_have(self) -> int:
        return self.capacity - len(self.pods)

    def _statement(self, demand: int) -> Statement:
        scaler = Scaler(self.batch, HALF, MOST_PODS)
        return Statement(
            demand=demand,
            batch=self.batch,
            buffer=HALF,
            max_ips=MOST_PODS,
            primaries=1,
            request=request_at(demand, scaler, 1),
            top=TOP,
        )

    def _window(self, index: int) -> PodRange:
        return PodRange(*window_of(stated_demand(self.statements[index]), self.batch, TOP))

    def _sum(self) -> PodRange:
        windows = [self._window(index) for index in range(len(self.pods))]
        return PodRange(sum(each.least for each in windows), sum(each.most for each in windows))

    def state(self, index: int) -> None:
        """The agent looks: it writes for another request or another batch, and below the top for another demand."""
        said, now = self.statements[index], self._statement(self.pods[index])
        if self.batch < TOP or said.request != now.request:
            self.statements[index] = now

    def read(self) -> None:
        if 10 * sum(1 + said.request for said in self.statements) > 9 * self.capacity:
            self.batch = 1
        nodes, pods = len(self.pods), self._sum()
        self.subnet = SubnetRoom(
            capacity=self.capacity,
            reserved=ReservedRange(nodes + pods.least, nodes + pods.most),
            pods=pods,
            containers=nodes,
            maxima=nodes + MOST_PODS * nodes,
        )
        self.room = decide_room(self.room, self.subnet)

    def _node(self, index: int) -> PublishedNode:
        window, said, shown = self._window(index), self.statements[index], self.numbers[index]
        is_window = window.least < window.most
        return PublishedNode(
            pods=window.most,
            least_pods=window.least,
            possible_pods=max(window.most, stated_demand(said).high),
            maximum=MOST_PODS,
            shown=shown,
            placed_pods=max(said.demand, shown) if is_window and shown is not None else None,
            is_outdated=is_window and said.batch != self.batch,
        )

    def publish(self, index: int, *, may_lower: bool) -> None:
        assert self.room is not None
        sums = ClusterSums(
            nodes=len(self.pods),
            pods=self._sum(),
            numbers=sum(each or 0 for each in self.numbers),
            is_lowering=any(is_lowering(self._node(each), self.room) for each in range(len(self.pods))),
        )
        number = decide_published(self._node(index), room_left(self.room, self.subnet, NO_OTHERS, sums))
        before = self.numbers[index]
        if before is None or number > before or may_lower:
            self.numbers[index] = number

    def bind(self, index: int) -> None:
        """Bind as many pods as the node publishes."""
        self.pods[index] = max(self.pods[index], self.numbers[index] or 0)

    def settle(self) -> None:
        for index in range(len(self.pods)):
            self.state(index)
        self.read()
        for may_lower in (True, False):
            for index in range(len(self.pods)):
                self.state(index)
                self.publish(index, may_lower=may_lower)


@given(st.integers(1, 5), st.integers(8, 200), st.data())
def test_in_a_burst_the_numbers_of_all_nodes_exceed_what_can_be_had_by_one_per_node_at_most(
    nodes: int, capacity: int, data: st.DataObject
) -> None:
    """Whatever is late: statements, readings, and numbers that are to be lowered. And then every pod finds its node."""
    cluster = StatingCluster(capacity, nodes)
    for _ in range(3):
        cluster.settle()
    limit = max(sum(each or 0 for each in cluster.numbers), cluster.can_have + nodes)
    some = st.one_of(st.just(list(range(nodes))), st.lists(st.integers(0, nodes - 1), unique=True))
    for _ in range(data.draw(st.integers(0, 8), label="rounds")):
        for index in data.draw(some, label="pods are bound to"):
            cluster.bind(index)
        for index in data.draw(some, label="state"):
            cluster.state(index)
        if data.draw(st.booleans(), label="the subnet is read"):
            cluster.read()
        may_lower = data.draw(st.booleans(), label="numbers may be lowered")
        for index in data.draw(some, label="publish"):
            cluster.publish(index, may_lower=may_lower)
            assert sum(each or 0 for each in cluster.numbers) <= limit
        for index in data.draw(st.one_of(st.just([]), some), label="a pod ends on"):
            cluster.pods[index] = max(0, cluster.pods[index] - 1)
    wanted = data.draw(st.integers(0, nodes - 1), label="the one node that pods fit on")
    for _ in range(2 * MOST_PODS):
        before = cluster.pods[wanted], list(cluster.numbers)
        cluster.settle()
        cluster.bind(wanted)
        if before == (cluster.pods[wanted], cluster.numbers):
            break
    assert cluster.pods[wanted] == MOST_PODS or sum(cluster.pods) >= cluster.can_have


@pytest.mark.parametrize("pods_each_round", [MOST_PODS, 5])
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("filling", [range(4), range(1, 4)])
def test_pods_that_are_bound_wherever_a_number_allows_exceed_what_can_be_had_by_one_per_node_at_most(
    pods_each_round: int, filling: range, *, is_read: bool
) -> None:
    """Round by round, on all nodes or on all but one that keeps its wide number, while nothing is lowered yet."""
    nodes, capacity = 4, 120
    cluster = StatingCluster(capacity, nodes)
    for _ in range(3):
        cluster.settle()
    for _ in range(60):
        for index in filling:
            cluster.pods[index] = min(cluster.pods[index] + pods_each_round, cluster.numbers[index] or 0)
            cluster.state(index)
        if is_read:
            cluster.read()
        for index in range(nodes):
            cluster.publish(index, may_lower=False)
        assert sum(each or 0 for each in cluster.numbers) <= cluster.can_have + nodes
