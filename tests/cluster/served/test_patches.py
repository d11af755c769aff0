"""What patches make of a document, by the examples of their own standards and by law."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.merge_patch import merge_patched
from podtide.cluster.port import Invalid
from podtide.cluster.served.json_patch import json_patched
from podtide.cluster.served.statuses import BadRequest
from podtide.cluster.served.strategic_merge_patch import strategic_merge_patched

LISTS = ("containers", "env", "finalizers")
DIRECTIVES = ("$setElementOrder/", "$deleteFromPrimitiveList/")
NAMES = st.sampled_from(
    [
        "a",
        "name",
        "$patch",
        "$retainKeys",
        *LISTS,
        *(prefix + name for prefix in DIRECTIVES for name in LISTS),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "merge", "replace", "delete"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(NAMES, JSON, max_size=4)


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [  # RFC 7396, appendix A
        ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
        ('{"a":"b"}', '{"a":null}', "{}"),
        ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
        ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
        ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
        ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
        ('["a","b"]', '["c","d"]', '["c","d"]'),
        ('{"a":"b"}', '["c"]', '["c"]'),
        ('{"a":"foo"}', "null", "null"),
        ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
        ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
        ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
    ],
)
def test_a_merge_patch_does_what_its_standard_shows(original: str, patch: str, result: str) -> None:
    assert merge_patched(json.loads(original), json.loads(patch)) == json.loads(result)


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [  # RFC 6902, appendix A, and the places where it is easy to go wrong
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "b"]}, [{"op": "add", "path": "/foo/1", "value": "c"}], {"foo": ["a", "c", "b"]}),
        ({"foo": ["a"]}, [{"op": "add", "path": "/foo/-", "value": ["b"]}], {"foo": ["a", ["b"]]}),
        ({"foo": ["a"]}, [{"op": "add", "path": "/foo/1", "value": "b"}], {"foo": ["a", "b"]}),
        ({"foo": 1, "baz": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 1}),
        ({"foo": ["a", "b", "c"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a", "c"]}),
        ({"foo": 1}, [{"op": "replace", "path": "/foo", "value": 2}], {"foo": 2}),
        ({"foo": ["a", "b"]}, [{"op": "replace", "path": "/foo/0", "value": "c"}], {"foo": ["c", "b"]}),
        (
            {"a": {"b": 1}, "c": {}},
            [{"op": "move", "from": "/a/b", "path": "/c/d"}],
            {"a": {}, "c": {"d": 1}},
        ),
        ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
        ({"a": {"b": [1]}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": [1]}, "c": {"b": [1]}}),
        (
            {"a/b": 1, "m~n": 2},
            [{"op": "remove", "path": "/a~1b"}, {"op": "test", "path": "/m~0n", "value": 2}],
            {"m~n": 2},
        ),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"~1": 1}, [{"op": "test", "path": "/~01", "value": 1}], {"~1": 1}),
        ({}, [], {}),
    ],
)
def test_a_json_patch_does_what_its_standard_shows(original: Any, patch: Any, result: Any) -> None:
    before = deepcopy(original)
    assert json_patched(original, patch) == result
    assert original == before


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "add", "path": "/a/b/c", "value": 1}, Invalid),
        ({"op": "add", "path": "/list/3", "value": 1}, Invalid),
        ({"op": "add", "path": "/list/-1", "value": 1}, Invalid),
        ({"op": "replace", "path": "/missing", "value": 1}, Invalid),
        ({"op": "replace", "path": "/list/-", "value": 1}, Invalid),
        ({"op": "remove", "path": "/list/2"}, Invalid),
        ({"op": "test", "path": "/a", "value": 2}, Invalid),
        ({"op": "move", "from": "/missing", "path": "/b"}, Invalid),
        ({"op": "add", "path": "/b"}, BadRequest),
        ({"op": "add", "path": "b", "value": 1}, BadRequest),
        ({"op": "copy", "path": "/b"}, BadRequest),
        ({"op": "invent", "path": "/b"}, BadRequest),
        ({"path": "/b"}, BadRequest),
    ],
)
def test_a_json_patch_that_cannot_be_carried_out_is_refused(
    operation: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        json_patched({"a": 1, "list": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"d": 2}}, {"b": {"c": 1, "d": 2}}),
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "b"}, {"name": "c"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "c"}, {"$patch": "replace"}]},
            {"containers": [{"name": "c"}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
        (
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
        ),
        (
            {"finalizers": ["a", "c"]},
            {"finalizers": ["b"], "$setElementOrder/finalizers": ["b", "a"]},
            {"finalizers": ["b", "c", "a"]},
        ),
        (
            {"env": [{"name": "a"}, {"name": "servers"}, {"name": "b"}]},
            {"env": [{"name": "b", "value": "1"}], "$setElementOrder/env": [{"name": "b"}, {"name": "a"}]},
            {"env": [{"name": "b", "value": "1"}, {"name": "servers"}, {"name": "a"}]},
        ),
        ({"a": {"b": 1, "c": 2}}, {"a": {"$patch": "replace", "d": 3}}, {"a": {"d": 3}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"$patch": "delete"}}, {"a": {}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c", "d"], "d": 3}}, {"a": {"c": 2, "d": 3}}),
    ],
)
def test_a_strategic_merge_patch_merges_lists_item_by_item_and_heeds_its_directives(
    original: Any, patch: Any, result: Any
) -> None:
    before = deepcopy(original)
    assert strategic_merge_patched(original, patch) == result
    assert original == before


@pytest.mark.parametrize("patch", [{"$patch": "invent"}, {"env": [{"value": "nameless"}]}, {"env": ["x"]}])
def test_a_strategic_merge_patch_that_cannot_be_understood_is_refused(patch: Any) -> None:
    with pytest.raises(BadRequest):
        strategic_merge_patched({}, patch)


@given(DOCUMENTS, JSON)
def test_whatever_is_sent_as_a_patch_is_carried_out_or_refused(document: dict[str, Any], patch: Any) -> None:
    merge_patched(document, patch)
    for patched in (json_patched, strategic_merge_patched):
        with suppress(BadRequest, Invalid):
            patched(document, patch)


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_leaves_the_document_it_was_given_alone(
    document: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = deepcopy(document)
    merge_patched(document, patch)
    with suppress(BadRequest):
        strategic_merge_patched(document, patch)
    assert document == before


@given(DOCUMENTS, DOCUMENTS)
def test_the_same_merge_patch_again_changes_nothing(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patched(document, patch)
    assert merge_patched(once, patch) == once
