"""Comparing, merging and pruning documents, on the cases that objects of our kinds hardly reach."""

from typing import Any

from podtide.cluster.embedded.field_shapes import FieldShape, field_shape_of, stated_fields
from podtide.cluster.embedded.merging import compare, merge, without
from podtide.resources.node_slice_pool import NodeSlicePool

ANY = FieldShape()
KEYED = FieldShape(list_keys=("type",))


def test_an_object_that_becomes_a_value_takes_its_fields_with_it() -> None:
    happened = compare({"a": {"b": 1, "c": 2}}, {"a": "text"}, ANY)
    assert happened.changed == {"f:a": {}}
    assert happened.removed == {"f:a": {"f:b": {}, "f:c": {}}}


def test_a_value_that_becomes_an_object_is_changed_with_all_its_fields() -> None:
    happened = compare({"a": "text"}, {"a": {"b": {"c": 1}}}, ANY)
    assert happened.changed == {"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}}
    assert happened.removed == {}


def test_a_list_without_a_key_is_one_field() -> None:
    happened = compare({"a": [1, 2]}, {"a": [1, 2, 3]}, ANY)
    assert happened.changed == {"f:a": {}}
    assert merge({"a": [1, 2]}, {"a": [3]}, ANY) == {"a": [3]}


def test_items_of_a_keyed_list_are_merged_one_by_one() -> None:
    shape = FieldShape(fields={"conditions": KEYED})
    present = {"conditions": [{"type": "A", "x": 1, "y": 1}, {"type": "B", "x": 1}]}
    applied = {"conditions": [{"type": "C"}, {"type": "A", "x": 2}]}
    merged = merge(present, applied, shape)
    assert merged == {"conditions": [{"type": "A", "x": 2, "y": 1}, {"type": "B", "x": 1}, {"type": "C"}]}
    happened = compare(present, merged, shape)
    assert happened.changed == {
        "f:conditions": {'k:{"type":"A"}': {"f:x": {}}, 'k:{"type":"C"}': {".": {}, "f:type": {}}}
    }


def test_what_is_left_empty_goes_too_unless_somebody_keeps_it() -> None:
    document = {"spec": {"scaler": {"batch": 4}}, "other": 1}
    gone: dict[str, Any] = {"f:spec": {"f:scaler": {"f:batch": {}}}}
    assert without(document, gone, {}, ANY) == {"other": 1}
    kept: dict[str, Any] = {"f:spec": {"f:scaler": {}}}
    assert without(document, gone, kept, ANY) == {"spec": {"scaler": {}}, "other": 1}


def test_what_nobody_owns_stays_beside_what_goes() -> None:
    document = {"spec": {"scaler": {"batch": 4, "unowned": 1}}}
    gone: dict[str, Any] = {"f:spec": {"f:scaler": {"f:batch": {}}}}
    assert without(document, gone, {}, ANY) == {"spec": {"scaler": {"unowned": 1}}}


def test_an_item_of_which_only_the_key_is_left_goes() -> None:
    shape = FieldShape(fields={"conditions": KEYED})
    document = {"conditions": [{"type": "A", "x": 1}, {"type": "B", "x": 1}]}
    gone: dict[str, Any] = {"f:conditions": {'k:{"type":"A"}': {".": {}, "f:x": {}}}}
    assert without(document, gone, {}, shape) == {"conditions": [{"type": "B", "x": 1}]}


def test_who_states_an_item_of_a_keyed_list_owns_the_item_itself() -> None:
    stated = stated_fields(
        {"status": {"conditions": [{"type": "Ready", "reason": "x"}], "allocations": [{"nodeName": ""}]}},
        field_shape_of(NodeSlicePool),
    )
    assert stated == {
        "f:status": {
            "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:type": {}, "f:reason": {}}},
            "f:allocations": {},
        }
    }


def test_finalizers_are_a_set_and_owners_whole_items_by_uid() -> None:
    metadata = {"finalizers": ["example.org/x"], "ownerReferences": [{"uid": "1", "name": "n"}], "labels": {}}
    assert stated_fields({"metadata": metadata}, field_shape_of(NodeSlicePool)) == {
        "f:metadata": {
            "f:finalizers": {'v:"example.org/x"': {}},
            "f:ownerReferences": {'k:{"uid":"1"}': {}},
            "f:labels": {},
        }
    }
