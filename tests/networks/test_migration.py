"""What a migration changes, what it leaves alone, and what it finds wrong."""

import json
from typing import Any

import pytest

from podtide.networks.migration import Migration, MigrationSnapshot, Mode, plan_migration
from podtide.networks.pods import NETWORK_STATUS_ANNOTATIONS, addresses_shown
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
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


def attachment(name: str, config: str | None = None, **ipam: Any) -> NetworkAttachmentDefinition:
    document = {"cniVersion": "1.0.0", "name": name, "ipam": {"type": "whereabouts", **ipam}}
    return NetworkAttachmentDefinition(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=NetworkAttachmentDefinitionSpec(config=json.dumps(document) if config is None else config),
    )


def pool(name: str, cidr: str, **held: str) -> IPPool:
    """`held` has pods by offset, which is written behind an `o`."""
    allocations = {key[1:]: IPAllocation(id="sandbox", podref=pod) for key, pod in held.items()}
    return IPPool(
        metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
        spec=IPPoolSpec(range=cidr, allocations=allocations),
    )


def slice_pool(name: str, cidr: str, **nodes: str) -> NodeSlicePool:
    return NodeSlicePool(
        metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
        spec=NodeSlicePoolSpec(range=cidr, slice_size="/24"),
        status=NodeSlicePoolStatus(
            allocations=[
                NodeSliceAllocation(node_name=node, slice_range=slice_) for node, slice_ in nodes.items()
            ]
        ),
    )


def reservation(name: str, podref: str) -> OverlappingRangeIPReservation:
    return OverlappingRangeIPReservation(
        metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
        spec=OverlappingRangeIPReservationSpec(podref=podref),
    )


def pod(podref: str, phase: PodPhase = PodPhase.RUNNING) -> Pod:
    namespace, _, name = podref.partition("/")
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace), status=PodStatus(phase=phase))


def plan(*attachments: NetworkAttachmentDefinition, **more: Any) -> Migration:
    nothing = dict.fromkeys(("reservations", "pools", "slice_pools", "pods"), ())
    return plan_migration(MigrationSnapshot(attachments=attachments, **{**nothing, **more}))


def left(found: Migration) -> dict[str, str]:
    return {item.attachment: item.words for item in found.left_alone}


def test_the_type_is_all_that_changes() -> None:
    text = '{ "name": "a",\n  "unknown": 1.50, "ipam": {"range": "10.0.0.0/24", "type": "whereabouts"}}'
    [change] = plan(attachment("a", text)).changes
    assert change.name == "default/a"
    assert change.config == text.replace('"whereabouts"', '"podtide"')


def test_what_is_podtides_already_is_done_so_a_second_run_finds_nothing_to_do() -> None:
    [change] = plan(attachment("a", range="10.0.0.0/24")).changes
    again = plan(attachment("a", change.config))
    assert again.changes == ()
    assert again.done == ("default/a",)


def test_definitions_of_others_and_of_the_primary_network_are_none_of_its_business() -> None:
    found = plan(
        attachment("macvlan", '{"ipam": {"type": "host-local"}}'),
        attachment("none", '{"type": "host-device"}'),
        attachment("file", ""),
        attachment("primary", '{"ipam": {"type": "podtide"}}'),
        attachment("broken", "{"),
    )
    assert (found.networks, found.changes, found.done, found.left_alone) == ((), (), (), ())


def test_a_definition_that_cannot_be_read_is_left_alone_with_the_reason() -> None:
    found = plan(attachment("bad", range="10.0.0.0/99"), attachment("odd", range="::/16"))
    assert "prefix length" in left(found)["default/bad"]
    assert "is not a valid Kubernetes name" in left(found)["default/odd"]
    assert found.changes == ()


def test_definitions_of_one_network_that_disagree_are_all_left_alone() -> None:
    found = plan(
        attachment("a", range="10.0.0.0/24", network_name="blue"),
        attachment("b", range="10.0.0.0/25", network_name="blue"),
        attachment("c", range="10.0.0.0/24", network_name="blue", enable_overlapping_ranges=False),
        attachment("d", range="10.0.0.0/24", network_name="green"),
    )
    assert left(found).keys() == {"default/a", "default/b", "default/c"}
    assert "described differently by default/a" in left(found)["default/b"]
    assert [change.name for change in found.changes] == ["default/d"]


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        (
            {"ipRanges": [{"range": "10.0.0.0/16", "node_slice_size": "/24"}]},
            "classic today and podtide would cut it into slices",
        ),
        (
            {"range": "10.0.0.0/16", "node_slice_size": "/24", "fast_ipam": False},
            "sliced today and podtide would use one pool",
        ),
    ],
)
def test_a_network_never_changes_its_mode(ipam: dict[str, Any], words: str) -> None:
    found = plan(attachment("a", **ipam))
    assert found.changes == ()
    assert words in left(found)["default/a"]


def test_a_sliced_network_with_addresses_in_a_pool_from_classic_times_is_left_alone() -> None:
    sliced = attachment("a", range="10.0.0.0/16", node_slice_size="/24")
    assert len(plan(sliced, pools=[pool("10.0.0.0-16", "10.0.0.0/16")]).changes) == 1
    found = plan(sliced, pools=[pool("10.0.0.0-16", "10.0.0.0/16", o1="ns/web")])
    assert found.changes == ()
    assert "pool 10.0.0.0-16 still holds 1 of its addresses" in left(found)["default/a"]


def test_networks_are_told_with_their_mode_pools_and_addresses_under_either_name() -> None:
    found = plan(
        attachment("classic", range="10.0.0.0/24", enable_overlapping_ranges=False),
        attachment("sliced", range="10.1.0.0/16", node_slice_size="/24", enable_overlapping_ranges=False),
        pools=[
            pool("10.0.0.0-24", "10.0.0.0/24", o1="ns/web", o2="ns/db"),
            pool("n1-10.1.0.0-24", "10.1.0.0/24", o1="ns/web"),
            pool("10.1.0.0-16-n2", "10.1.1.0/24", o1="ns/db"),
            pool("left-over", "10.9.0.0/24"),
            pool("nonsense", "nonsense"),
        ],
        slice_pools=[slice_pool("sliced", "10.1.0.0/16", n1="10.1.0.0/24", n2="10.1.1.0/24")],
        pods=[pod("ns/web"), pod("ns/db")],
    )
    classic, sliced = found.networks
    assert (classic.network, classic.mode, classic.allocations) == ("10.0.0.0-24", Mode.CLASSIC, 2)
    assert (sliced.network, sliced.mode, sliced.allocations) == ("10.1.0.0-16", Mode.SLICED, 2)
    assert sliced.pools == ("10.1.0.0-16-n2", "n1-10.1.0.0-24")
    assert sliced.slice_pools == ("sliced",)
    assert found.ownerless_pools == ("left-over", "nonsense")
    assert found.for_you == found.mended_by_repair == ()


def test_a_configurations_name_that_kubernetes_would_not_take_is_no_obstacle() -> None:
    config = {
        "name": "My_Net",
        "ipam": {"type": "whereabouts", "range": "10.1.0.0/16", "node_slice_size": 24},
    }
    assert len(plan(attachment("a", json.dumps(config))).changes) == 1


def test_what_is_wrong_today_is_told_apart_by_who_can_mend_it() -> None:
    found = plan(
        attachment("a", range="10.0.0.0/16", node_slice_size="/24", network_name="blue"),
        pools=[
            pool("blue-n1-10.0.0.0-24", "10.0.0.0/24", o1="ns/gone", o2="ns/web"),
            pool("blue-n2-10.0.0.0-24", "10.0.0.0/24", o2="ns/db"),
        ],
        reservations=[reservation("blue-10.0.0.1", "ns/gone"), reservation("blue-10.0.0.2", "ns/web")],
        slice_pools=[slice_pool("blue", "10.0.0.0/16", n1="10.0.0.0/24", n2="10.0.0.0/24", n3="nonsense")],
        pods=[pod("ns/web"), pod("ns/db"), pod("ns/gone", PodPhase.SUCCEEDED)],
    )
    assert [item.words for item in found.for_you] == [
        "slice 10.0.0.0/24 of node n2 overlaps slice 10.0.0.0/24 of node n1 in network blue",
        "10.0.0.2 is held by ns/web in pool blue-n1-10.0.0.0-24 and by ns/db in pool blue-n2-10.0.0.0-24",
    ]
    assert [item.invariant for item in found.mended_by_repair] == [2, 6, 6]
    assert len(found.changes) == 1  # it was so before, and is no worse after


def test_a_pool_that_two_networks_could_have_named_so_is_nobodys() -> None:
    """`a-b-10.0.0.0-24` is node b's of network a, or node a-b's of the unnamed one."""
    found = plan(
        attachment("named", range="10.0.0.0/16", node_slice_size="/24", network_name="a"),
        attachment("unnamed", range="10.0.0.0/16", node_slice_size="/24"),
        pools=[pool("a-b-10.0.0.0-24", "10.0.0.0/24")],
    )
    assert found.ownerless_pools == ("a-b-10.0.0.0-24",)


def test_unnamed_networks_may_share_a_range() -> None:
    found = plan(
        attachment("one", ipRanges=[{"range": "10.0.0.0/24"}, {"range": "fd00::/64"}]),
        attachment("two", ipRanges=[{"range": "10.1.0.0/24"}, {"range": "fd00::/64"}]),
        pools=[pool("fd00---64", "fd00::/64", o1="ns/web")],
    )
    assert [item.pools for item in found.networks] == [("fd00---64",), ()]
    assert found.ownerless_pools == ()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('[{"name": "a", "ips": ["10.0.0.1", "fd00::1"]}, {"name": "b"}]', {"10.0.0.1", "fd00::1"}),
        ("[]", set()),
        ("", None),
        ("nonsense", None),
        ('[{"ips": ["nonsense"]}]', None),
    ],
)
def test_which_addresses_a_pod_shows(written: str, shown: set[str] | None) -> None:
    for name in NETWORK_STATUS_ANNOTATIONS:
        found = addresses_shown(Pod(metadata=ObjectMeta(annotations={name: written})))
        assert (None if found is None else {str(address) for address in found}) == shown


def test_a_sliced_network_whose_name_is_too_long_for_a_shared_pool_never_had_one() -> None:
    long = "a" * 250
    found = plan(
        attachment("long", range="10.0.0.0/16", network_name=long, node_slice_size="/24"),
        attachment("other", range="10.1.0.0/24"),
    )
    assert [change.name for change in found.changes] == ["default/long", "default/other"]
    assert found.left_alone == ()
