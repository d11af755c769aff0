"""The picture that is audited: whose every pool, reservation and slice is, found from the objects themselves."""

from ipaddress import ip_address, ip_network

import msgspec

from podtide.core.audit.networks import NetworkPicture
from podtide.core.networks.allocations import Allocation
from podtide.networks.audit_picture import draw_networks
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import NETWORK_ANNOTATION, NODE_ANNOTATION
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod, PodPhase, PodStatus

ENTRY = IPAllocation(id="sandbox", podref="ns/web", ifname="net1", pod_uid="uid")


def attachment(**ipam: object) -> NetworkAttachmentDefinition:
    config = {"name": "conf", "ipam": {"type": "podtide", **ipam}}
    return NetworkAttachmentDefinition(
        spec=NetworkAttachmentDefinitionSpec(config=msgspec.json.encode(config).decode())
    )


def drawn(*attachments: NetworkAttachmentDefinition, **more: object) -> NetworkPicture:
    return draw_networks(attachments, **{"pools": (), "reservations": (), **more})  # type: ignore[arg-type]  # as draw_networks has them


def pool(name: str, cidr: str, **annotations: str) -> IPPool:
    return IPPool(
        metadata=ObjectMeta(name=name, annotations=annotations),
        spec=IPPoolSpec(range=cidr, allocations={"1": ENTRY, "nonsense": ENTRY}),
    )


def reservation(name: str) -> OverlappingRangeIPReservation:
    return OverlappingRangeIPReservation(
        metadata=ObjectMeta(name=name), spec=OverlappingRangeIPReservationSpec(podref="ns/web")
    )


def test_a_pool_is_drawn_with_its_network_its_node_and_its_holders() -> None:
    sliced = attachment(range="10.0.0.0/16", network_name="blue", node_slice_size="/24")
    marks = {NODE_ANNOTATION: "n1", NETWORK_ANNOTATION: "blue"}
    [view] = drawn(sliced, pools=[pool("whatever", "10.0.3.0/24", **marks)]).pools
    assert (view.network, view.guarded_as, view.node) == ("blue", "blue", "n1")
    assert view.range == ip_network("10.0.3.0/24")
    assert view.holders == {ip_address("10.0.3.1"): Allocation("sandbox", "ns/web", "net1", "uid")}


def test_a_pool_that_is_not_guarded_or_nobodys_is_compared_with_no_reservation() -> None:
    unguarded = attachment(range="10.0.0.0/24", enable_overlapping_ranges=False)
    pools = [pool("10.0.0.0-24", "10.0.0.0/24"), pool("unknown", "10.9.0.0/24")]
    known, unknown = drawn(unguarded, pools=pools).pools
    assert (known.network, known.guarded_as) == ("10.0.0.0-24", None)
    assert (unknown.network, unknown.guarded_as) == ("", None)


def test_a_pool_is_guarded_only_if_all_its_definitions_say_so() -> None:
    attachments = [
        attachment(range="10.0.0.0/24"),
        attachment(range="10.0.0.0/24", enable_overlapping_ranges=False),
    ]
    [view] = drawn(*attachments, pools=[pool("10.0.0.0-24", "10.0.0.0/24")]).pools
    assert view.guarded_as is None


def test_a_reservation_is_read_by_the_networks_there_are() -> None:
    """`a-fd00--1` is fd00::1 of network a, or a:fd00::1 of an unnamed one: the ranges decide."""
    named = attachment(range="fd00::/64", network_name="a")
    [view] = drawn(named, reservations=[reservation("a-fd00--1"), reservation("b-fd00--1")]).reservations
    assert (view.guarded_as, view.address) == ("a", ip_address("fd00::1"))
    unnamed = attachment(range="a:fd00::/32")
    [view] = drawn(unnamed, reservations=[reservation("a-fd00--1")]).reservations
    assert (view.guarded_as, view.address) == ("", ip_address("a:fd00::1"))
    assert drawn(named, unnamed, reservations=[reservation("a-fd00--1")]).reservations == ()


def test_slices_are_drawn_by_network_and_free_ones_are_nobodys() -> None:
    sliced = attachment(range="10.0.0.0/16", node_slice_size="/24")
    entries = [
        NodeSliceAllocation(node_name="n1", slice_range="10.0.0.0/24"),
        NodeSliceAllocation(node_name="", slice_range="10.0.1.0/24"),
    ]
    spec = NodeSlicePoolSpec(range="10.0.0.0/16", slice_size="/24")
    pools = [
        NodeSlicePool(metadata=ObjectMeta(name=name), spec=spec, status=status)
        for name, status in (
            ("conf", NodeSlicePoolStatus(allocations=entries)),
            ("left-over", NodeSlicePoolStatus(allocations=entries)),
            ("new", None),
        )
    ]
    assert [(view.network, view.node) for view in drawn(sliced, slice_pools=pools).slices] == [
        ("10.0.0.0-16", "n1"),
        ("left-over", "n1"),
    ]


def test_pods_that_have_ended_are_not_among_the_living() -> None:
    pods = [
        Pod(metadata=ObjectMeta(name="web", namespace="ns", uid="1"), status=PodStatus(phase=phase))
        for phase in (PodPhase.PENDING, PodPhase.FAILED)
    ]
    assert drawn(pods=pods[:1]).pods == {"ns/web": frozenset({"1"})}
    assert drawn(pods=pods[1:]).pods == {}
    assert drawn().pods is None
