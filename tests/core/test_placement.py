"""Laws of the number that a node publishes for schedulers."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podtide.core.subnet.demand_by_batch import PodRange, ReservedRange
from podtide.core.subnet.placement import (
    UNLIMITED,
    ClusterSums,
    PublishedNode,
    RoomLeft,
    SubnetRoom,
    decide_published,
    decide_room,
    has_no_room,
    least_number,
    others_of,
    room_left,
)

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


rooms_left = st.builds(
    RoomLeft,
    room=st.sampled_from([0, 1, 2, 4, 8, 64, UNLIMITED]),
    for_one=st.booleans(),
    unpublished=st.integers(-20, 100),
)
restating = st.builds(
    PublishedNode,
    pods=st.integers(0, 60),
    maximum=st.integers(1, 40),
    shown=st.integers(0, 80),
    stated_pods=st.integers(0, 60),
)
nodes = st.builds(
    PublishedNode,
    pods=st.integers(0, 60),
    maximum=st.integers(1, 40),
    unrequested=st.integers(-3, 10),
    shown=st.one_of(st.none(), st.integers(0, 80)),
)


@given(nodes, rooms_left)
def test_never_less_is_published_than_pods_there_request(node: PublishedNode, left: RoomLeft) -> None:
    number = decide_published(node, left)
    assert number >= max(0, node.pods - node.unrequested)
    most = max(node.pods, min(node.maximum, node.pods + left.room))
    assert number == 0 or number + node.unrequested <= most


@given(nodes, rooms_left)
def test_what_was_published_is_left_if_nothing_else_changes(node: PublishedNode, left: RoomLeft) -> None:
    number = decide_published(node, left)
    taken = number - (0 if node.shown is None else node.shown)
    after = structs.replace(left, unpublished=left.unpublished - max(taken, 0))
    if number >= least_number(node, left.room):
        assert decide_published(structs.replace(node, shown=number), after) == number


@given(restating, rooms_left)
def test_until_a_node_has_stated_its_demand_anew_it_is_raised_by_what_others_leave_alone(
    node: PublishedNode, left: RoomLeft
) -> None:
    assert node.shown is not None
    assert node.stated_pods is not None
    known = max(node.shown, min(node.pods, node.stated_pods))
    assert decide_published(node, left) <= known + max(0, left.unpublished)


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
    node = PublishedNode(pods=12, maximum=100, shown=9, stated_pods=8)
    full = RoomLeft(room=4, for_one=True, unpublished=0)
    assert decide_published(node, full) == 9
    assert decide_published(structs.replace(node, stated_pods=None), full) == 13
    assert decide_published(structs.replace(node, stated_pods=10), full) == 10  # it has no less than it said
    assert decide_published(structs.replace(node, shown=None), full) == 12
    assert (
        decide_published(node, structs.replace(full, unpublished=3)) == 12
    )  # what others leave is another matter


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
