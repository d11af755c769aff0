from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.resources.base import ObjectMeta, Original, Resource
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetSpec, ScalerOverride
from podtide.resources.codec import InvalidObject, decode, encode, from_document, to_document
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.node_network_config import (
    ConfigStatus,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.pod import Pod
from podtide.resources.shapes import ListShape, MapShape, PartShape, Shape, shape_of
from resources.documents import (
    copy,
    field_names,
    json_values,
    kinds,
    objects,
    objects_of,
    optional_fields,
    pairs,
    parts,
)


def keeping(kind: type[Resource]) -> bool:
    return kind.api.keeps_unknown


@st.composite
def disturbed(draw: st.DrawFn) -> tuple[type[Resource], dict[str, Any]]:
    """A document with fields that no struct names, in every part of it."""
    kind = draw(kinds.filter(keeping))
    document = copy(to_document(draw(objects_of(kind))))
    for _, part in parts(kind, document):
        part["x-foreign"] = draw(json_values)
    return kind, document


@given(objects)
def test_what_is_written_is_read_back_the_same(item: Resource) -> None:
    assert decode(type(item), encode(item)) == item


@given(objects)
def test_a_document_says_its_kind(item: Resource) -> None:
    document = to_document(item)
    assert (document["apiVersion"], document["kind"]) == (item.api.api_version, item.api.kind)


@given(disturbed())
def test_unknown_fields_anywhere_survive_a_read_and_a_write(
    given_: tuple[type[Resource], dict[str, Any]],
) -> None:
    kind, document = given_
    assert to_document(decode(kind, msgspec.json.encode(document))) == document


@given(disturbed(), st.dictionaries(st.text(), st.text()))
def test_a_change_touches_nothing_else(
    given_: tuple[type[Resource], dict[str, Any]], labels: dict[str, str]
) -> None:
    kind, document = given_
    item = from_document(kind, copy(document))
    changed = replace(item, metadata=replace(item.metadata, labels=labels))

    document.setdefault("metadata", {}).pop("labels", None)
    if labels:
        document["metadata"]["labels"] = labels
    assert to_document(changed) == document


@given(pairs)
def test_known_fields_come_from_the_struct_alone_so_a_cleared_one_is_gone(
    pair: tuple[Resource, Resource],
) -> None:
    before, after = pair
    written = to_document(replace(after, original=Original(to_document(before))))
    assert from_document(type(after), written) == after


@given(disturbed())
def test_without_unknown_fields_a_document_says_only_what_the_struct_does(
    given_: tuple[type[Resource], dict[str, Any]],
) -> None:
    kind, document = given_
    item = from_document(kind, document)
    assert to_document(item, keep_unknown=False) == to_document(replace(item, original=None))


@given(disturbed(), st.data())
def test_null_reads_like_a_field_that_is_not_there(
    given_: tuple[type[Resource], dict[str, Any]], data: st.DataObject
) -> None:
    kind, document = given_
    absent, null = copy(document), copy(document)
    for (part, without), (_, with_null) in zip(
        list(parts(kind, absent)), list(parts(kind, null)), strict=True
    ):
        for name in data.draw(st.sets(st.sampled_from(optional_fields(part) or ["x-unknown"]))):
            without.pop(name, None)
            with_null[name] = None
    assert decode(kind, msgspec.json.encode(null)) == decode(kind, msgspec.json.encode(absent))


@given(disturbed(), st.data())
def test_anything_that_does_not_fit_is_an_invalid_object_and_no_other_error(
    given_: tuple[type[Resource], dict[str, Any]], data: st.DataObject
) -> None:
    kind, document = given_
    part, within = data.draw(st.sampled_from(list(parts(kind, document))))
    within[data.draw(st.sampled_from(field_names(part)))] = data.draw(json_values)
    with suppress(InvalidObject):
        to_document(from_document(kind, document))


@given(objects)
def test_decoding_straight_into_the_struct_finds_the_same_object(item: Resource) -> None:
    data = encode(item)
    assert decode(type(item), data) == from_document(type(item), msgspec.json.decode(data))


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.api.kind)
def test_every_part_in_a_list_or_map_can_be_told_from_the_others(kind: type[Resource]) -> None:
    def check(shape: Shape) -> None:
        match shape:
            case PartShape(inner=inner):
                for each in inner.values():
                    check(each)
            case ListShape(item=item, merge_key=key) | MapShape(value=item, merge_key=key):
                assert key in item.known
                check(item)

    check(shape_of(kind))


def test_an_item_keeps_its_unknown_fields_when_the_list_is_reordered() -> None:
    nnc = decode(
        NodeNetworkConfig,
        b'{"status": {"networkContainers": [{"id": "a", "new": 1}, {"id": "b", "new": 2}, {"id": "c", "new": 3}]}}',
    )
    a, b, _ = nnc.status.network_containers
    turned = replace(nnc, status=replace(nnc.status, network_containers=[b, a]))
    containers = to_document(turned)["status"]["networkContainers"]
    assert [(each["id"], each["new"]) for each in containers] == [("b", 2), ("a", 1)]


def test_an_address_given_to_another_pod_inherits_nothing_of_the_last_one() -> None:
    pool = decode(
        IPPool,
        b"""{"spec": {"range": "10.0.0.0/24", "allocations": {
            "1": {"id": "c1", "podref": "ns/a", "ipamclaimref": "ns/claim-a"},
            "2": {"id": "c2", "podref": "ns/b", "ipamclaimref": "ns/claim-b"}}}}""",
    )
    allocations = {
        "1": IPAllocation(id="c9", podref="ns/z"),
        "2": replace(pool.spec.allocations["2"], id="c3"),
    }
    written = to_document(replace(pool, spec=replace(pool.spec, allocations=allocations)))
    assert written["spec"]["allocations"] == {
        "1": {"id": "c9", "podref": "ns/z"},
        "2": {"id": "c3", "podref": "ns/b", "ipamclaimref": "ns/claim-b"},
    }


def test_a_part_that_is_set_back_whole_leaves_what_others_wrote_into_it() -> None:
    nnc = decode(NodeNetworkConfig, b'{"status": {"assignedIPCount": 5, "theirs": 1}}')
    written = to_document(replace(nnc, status=NodeNetworkConfig().status))
    assert written["status"] == {"theirs": 1}


def test_an_optional_part_that_is_taken_away_takes_all_of_it() -> None:
    subnet = decode(ClusterSubnet, b'{"status": {"scaler": {"batch": 4, "buffer": 1, "theirs": 1}}}')
    written = to_document(replace(subnet, status=replace(subnet.status, scaler=None)))
    assert "scaler" not in written["status"]


def test_a_request_for_no_addresses_is_sent_and_an_empty_release_is_not() -> None:
    assert to_document(NodeNetworkConfig())["spec"] == {"requestedIPCount": 0}
    spec = NodeNetworkConfigSpec(requested_ip_count=0, ips_not_in_use=[])
    assert to_document(NodeNetworkConfig(spec=spec))["spec"] == {"requestedIPCount": 0}


def test_a_status_nobody_set_is_not_sent_so_applying_a_spec_says_nothing_about_it() -> None:
    assert "status" not in to_document(NodeNetworkConfig(metadata=ObjectMeta(name="n")), keep_unknown=False)


def test_a_part_left_at_its_default_is_left_out_however_deep() -> None:
    subnet = ClusterSubnet(spec=ClusterSubnetSpec(scaler=ScalerOverride()))
    assert "spec" not in to_document(subnet)
    assert to_document(replace(subnet, spec=ClusterSubnetSpec(scaler=ScalerOverride(batch=8))))["spec"] == {
        "scaler": {"batch": 8}
    }


def test_an_empty_pool_says_that_it_is_empty() -> None:
    pool = IPPool(spec=IPPoolSpec(range="10.0.0.0/24", allocations={}))
    assert to_document(pool)["spec"] == {"range": "10.0.0.0/24", "allocations": {}}


def test_null_for_a_required_list_or_map_is_an_empty_one() -> None:
    pool = decode(
        IPPool, b'{"metadata": {"creationTimestamp": null}, "spec": {"range": "r", "allocations": null}}'
    )
    assert pool.spec.allocations == {}
    slices = decode(
        NodeSlicePool, b'{"spec": {"range": "r", "sliceSize": "/24"}, "status": {"allocations": null}}'
    )
    assert slices.status is not None
    assert slices.status.allocations == []


def test_null_for_a_required_word_is_an_error_because_nobody_can_guess_it() -> None:
    with pytest.raises(InvalidObject, match=r"\.spec\.range"):
        decode(IPPool, b'{"metadata": {"name": "p"}, "spec": {"range": null, "allocations": {}}}')


def test_null_in_a_kind_that_keeps_nothing_unknown_is_read_too() -> None:
    pod = decode(
        Pod, b'{"metadata": {"labels": null}, "spec": {"nodeName": null}, "status": {"podIPs": null}}'
    )
    assert pod == Pod()


def test_the_server_s_record_of_field_managers_is_not_sent_back() -> None:
    data = b'{"metadata": {"name": "n", "selfLink": "/n", "managedFields": [{"manager": "m"}]}}'
    assert to_document(decode(NodeNetworkConfig, data))["metadata"] == {"name": "n", "selfLink": "/n"}


def test_reading_a_document_leaves_it_as_it_was() -> None:
    document: dict[str, Any] = {
        "metadata": {"name": "n", "labels": None, "managedFields": [{}]},
        "spec": None,
    }
    before = copy(document)
    from_document(NodeNetworkConfig, document)
    assert document == before


def test_a_word_of_a_newer_peer_is_kept_as_it_is() -> None:
    nnc = decode(NodeNetworkConfig, b'{"status": {"status": "Paused"}}')
    assert nnc.status.status not in tuple(ConfigStatus)
    assert nnc.status.status == ConfigStatus("Paused") == "Paused"
    assert to_document(nnc)["status"]["status"] == "Paused"


def test_two_objects_that_say_the_same_are_equal_wherever_they_came_from() -> None:
    written = NodeNetworkConfig(metadata=ObjectMeta(name="n"), status=NodeNetworkConfigStatus())
    read = decode(NodeNetworkConfig, b'{"metadata": {"name": "n"}, "theirs": 1}')
    assert read == written
    assert written == read
    assert read != decode(NodeNetworkConfig, b'{"metadata": {"name": "m"}, "theirs": 1}')


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            b'{"metadata": {"namespace": "kube-system", "name": "n"}, "spec": {"requestedIPCount": "5"}}',
            "NodeNetworkConfig kube-system/n cannot be read: .spec.requestedIPCount: Expected `int`, got `str`; correct that field",
        ),
        (
            b'{"metadata": {"name": "n"}, "status": {"networkContainers": [{}, {"id": 1.5}]}}',
            "NodeNetworkConfig n cannot be read: .status.networkContainers[1].id: Expected `str`, got `float`; correct that field",
        ),
        (
            b'{"metadata": 7}',
            "NodeNetworkConfig without a name cannot be read: .metadata: Expected `object`, got `int`; correct that field",
        ),
        (
            b'{"apiVersion": "v1", "kind": "Status"}',
            "a document of v1 Status was read as acn.azure.com/v1alpha NodeNetworkConfig: ask for it by its own kind",
        ),
        (
            b"[]",
            "cannot read a NodeNetworkConfig: it is not a JSON object: Expected `object`, got `array`",
        ),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_kind_object_and_field(data: bytes, line: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        decode(NodeNetworkConfig, data)
    assert str(caught.value) == line


def test_a_list_or_map_that_is_something_else_is_named() -> None:
    with pytest.raises(InvalidObject, match=r"\.status\.networkContainers: Expected `array`, got `int`"):
        decode(NodeNetworkConfig, b'{"status": {"networkContainers": 5}}')
    with pytest.raises(InvalidObject, match=r"\.spec\.allocations: Expected `object`, got `array`"):
        decode(IPPool, b'{"spec": {"range": "r", "allocations": []}}')


def test_what_is_no_json_says_so_for_either_way_of_decoding() -> None:
    for kind in (Pod, NodeNetworkConfig):
        with pytest.raises(InvalidObject, match="not a JSON object"):
            decode(kind, b"<html>")


def test_a_pod_that_does_not_fit_is_named_like_any_other() -> None:
    with pytest.raises(InvalidObject, match=r"^Pod default/web cannot be read: \.spec\.hostNetwork: "):
        decode(Pod, b'{"metadata": {"namespace": "default", "name": "web"}, "spec": {"hostNetwork": "yes"}}')
