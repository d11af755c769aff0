"""What is read of a node and of a subnet for the rule of placement, where a reading for the batch would not do."""

from fractions import Fraction

from msgspec import structs

from podtide.allocator.subnets import Subnet, SubnetDemandReport, SubnetInForce
from podtide.controller.placement.node_resources import demand_of
from podtide.controller.placement.subnet_rooms import RoomReading, SubnetRooms
from podtide.core.subnet.batch import BatchInForce, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import PodRange, ReservedRange
from podtide.core.subnet.placement import SubnetRoom
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, UNREQUESTED_ANNOTATION
from podtide.resources.node import Node, NodeStatus
from podtide.resources.node_network_config import (
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.statement_annotation import render

HALF = Fraction(1, 2)
READING = RoomReading(
    room=4,
    batch=4,
    top=16,
    is_tight=False,
    subnet=SubnetRoom(
        capacity=100, reserved=ReservedRange(3, 3), pods=PodRange(1, 1), containers=1, maxima=999
    ),
    others=PodRange(0, 0),
)


def config(demand: int, batch: int, *subnets: str) -> NodeNetworkConfig:
    """A node that stated a demand by a batch, and has a container in each of these subnets."""
    request = request_at(demand, Scaler(batch, HALF), 1)
    statement = Statement(
        demand=demand, batch=batch, buffer=HALF, max_ips=250, primaries=1, request=request, top=16
    )
    owner = OwnerReference(api_version="v1", kind="Node", name="n", uid="u", controller=True)
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name="n",
            owner_references=[owner],
            annotations={STATEMENT_ANNOTATION: render(statement), UNREQUESTED_ANNOTATION: "0"},
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=request),
        status=NodeNetworkConfigStatus(
            network_containers=[
                NetworkContainer(id=f"u-{name}", subnet_name=name, primary_ip="10.0.0.1")
                for name in (subnets or ("pods",))
            ]
        ),
    )


def test_a_node_may_have_more_pods_than_it_stated_below_the_top_batch() -> None:
    """It states its demand anew only where that matters for a larger batch."""
    node = Node(metadata=ObjectMeta(name="n", uid="u"), status=NodeStatus(allocatable={"pods": "2"}))
    demand = demand_of(node, config(1, 4), 250)
    assert demand is not None
    by_rule = demand.published(READING, shown=None)
    assert (by_rule.least_pods, by_rule.pods, by_rule.possible_pods) == (1, 1, 2)
    assert demand.entry(READING, 3).pods == PodRange(1, 1)


def test_a_node_in_two_subnets_may_follow_the_batch_of_the_other_for_good() -> None:
    """In one it has yet to answer the batch in force, and nothing is raised by its window until it has."""
    node = Node(metadata=ObjectMeta(name="n", uid="u"), status=NodeStatus(allocatable={"pods": "110"}))
    for subnets, is_outdated in ((("pods",), True), (("pods", "pods-v6"), False)):
        demand = demand_of(node, config(1, 8, *subnets), 250)
        assert demand is not None
        assert demand.published(READING, shown=None).is_outdated == is_outdated
        assert demand.published(READING, shown=3).placed_pods == (3 if is_outdated else None)


def test_at_the_largest_batch_a_node_has_no_more_pods_than_it_published_if_nobody_else_changed_that() -> None:
    node = Node(metadata=ObjectMeta(name="n", uid="u"), status=NodeStatus(allocatable={"pods": "110"}))
    demand = demand_of(node, config(10, 16), 250)
    assert demand is not None
    reading = structs.replace(READING, batch=16)
    by_rule = demand.published(reading, shown=12, is_bound=True)
    assert (by_rule.least_pods, by_rule.pods, by_rule.placed_pods) == (9, 24, 12)
    assert demand.published(reading, shown=9, is_bound=True).placed_pods == 10  # it stated as many
    assert demand.published(reading, shown=12).placed_pods is None
    assert demand.published(reading, shown=None, is_bound=True).placed_pods is None
    tight = structs.replace(reading, is_tight=True)
    assert demand.published(tight, shown=12, is_bound=True).placed_pods is None


def test_what_pods_have_of_a_cidr_that_drains_does_not_make_a_subnet_full() -> None:
    subnet = Subnet(
        network="blue",
        name="pods",
        cidrs=("10.1.0.0/26", "10.2.0.0/26"),
        gateways=("", ""),
        keep_back=(),
        keep_back_first=0,
        capacity=99,
        reserved=97,
        containers=0,
        owed=0,
        quarantined=97,
        draining=("10.1.0.0/26",),
        draining_reserved=38,
        in_force=SubnetInForce(batch=16, buffer="0.5", top=16),
    )
    reading = SubnetReading(capacity=61, draining=38, reserved=97, containers=0, ungoverned=97)
    decision = decide_batch(BatchInForce(), reading, BatchBounds(batch=16, buffer=HALF))
    rooms = SubnetRooms(lambda _: None, lambda _: ())
    report = SubnetDemandReport(subnet=subnet, alike=(), bounds=())
    assert not rooms.note_subnet(report, decision).is_full
