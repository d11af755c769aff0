"""Selectors as text: what they mean, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.embedded.selectors import field_reader, parse_selector
from podtide.cluster.port import Invalid

OFFERED = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase")

keys = st.sampled_from(["app", "tier", "podtide.example/zone"])
values = st.sampled_from(["", "a", "B-2", "x.y_z"])
label_sets = st.dictionaries(keys, values)


def selects(selector: str, labels: dict[str, str]) -> bool:
    return parse_selector("", "", selector, OFFERED).matches(labels, {})


@given(label_sets, keys, values)
def test_equality(labels: dict[str, str], key: str, value: str) -> None:
    for spelled in (f"{key}={value}", f"{key}=={value}", f" {key} = {value} "):
        assert selects(spelled, labels) == (labels.get(key) == value)


@given(label_sets, keys, values)
def test_inequality_holds_where_the_label_is_absent(labels: dict[str, str], key: str, value: str) -> None:
    assert selects(f"{key}!={value}", labels) == (labels.get(key) != value)


@given(label_sets, keys, st.sets(values, min_size=1))
def test_membership(labels: dict[str, str], key: str, members: set[str]) -> None:
    text = f"({', '.join(sorted(members))})"
    assert selects(f"{key} in {text}", labels) == (labels.get(key) in members)
    assert selects(f"{key} notin {text}", labels) == (labels.get(key) not in members)


@given(label_sets, keys)
def test_presence(labels: dict[str, str], key: str) -> None:
    assert selects(key, labels) == (key in labels)
    assert selects(f"!{key}", labels) == (key not in labels)


@given(label_sets, keys, values, keys)
def test_all_requirements_must_hold(labels: dict[str, str], key: str, value: str, present: str) -> None:
    assert selects(f"{key}!={value},{present}", labels) == (labels.get(key) != value and present in labels)


@pytest.mark.parametrize(
    "text", ["a b", "in (a)", "a in a", "a in (a", "a notin a)", "=a", "!", "a=b=c", "a,,b", "a!"]
)
def test_what_is_no_label_selector_is_invalid(text: str) -> None:
    with pytest.raises(Invalid, match="not a label selector"):
        parse_selector("", "", text, OFFERED)


@pytest.mark.parametrize(
    "text", ["metadata.name", "=a", "metadata.name=a=b", "metadata.name=a,,status.phase=b", ","]
)
def test_what_is_no_field_selector_is_invalid(text: str) -> None:
    with pytest.raises(Invalid, match="not a field selector"):
        parse_selector("", text, "", OFFERED)


def test_a_path_the_kind_does_not_offer_is_invalid_and_the_error_names_those_it_does() -> None:
    with pytest.raises(Invalid, match=r"spec\.hostNetwork.*spec\.nodeName"):
        parse_selector("", "spec.hostNetwork=true", "", OFFERED)


def test_fields_are_compared_as_text_and_an_absent_one_is_empty() -> None:
    read = field_reader(("a.b", "a.flag", "a.count", "a.none", "x.y"))
    document: dict[str, object] = {"a": {"b": "text", "flag": True, "count": 7, "none": None}, "x": "scalar"}
    assert read(document) == {"a.b": "text", "a.flag": "true", "a.count": "7", "a.none": "", "x.y": ""}


def test_a_value_may_escape_what_would_end_it() -> None:
    selector = parse_selector("", r"spec.nodeName=a\,b\=c\\d,status.phase!=Failed", "", OFFERED)
    assert selector.matches({}, {"spec.nodeName": r"a,b=c\d", "status.phase": "Running"})
    assert not selector.matches({}, {"spec.nodeName": r"a,b=c\d", "status.phase": "Failed"})


def test_exact_fields_are_those_with_a_given_value_and_the_namespace() -> None:
    selector = parse_selector("default", "spec.nodeName=n1,status.phase!=Failed", "app=x", OFFERED)
    assert selector.exact == {"metadata.namespace": "default", "spec.nodeName": "n1"}
