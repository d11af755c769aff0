from typing import Any

import pytest

from podtide.resources.base import Key, ObjectMeta, Original
from podtide.resources.node import Node
from podtide.resources.pod import Pod, PodPhase


def test_a_key_reads_as_kubernetes_writes_it() -> None:
    assert str(Pod(metadata=ObjectMeta(name="web", namespace="default")).key) == "default/web"
    assert str(Node(metadata=ObjectMeta(name="node-1")).key) == "node-1"


def test_keys_sort_by_namespace_then_name() -> None:
    keys = [Key("b", "a"), Key("a", "z"), Key("", "n")]
    assert sorted(keys) == [Key("", "n"), Key("a", "z"), Key("b", "a")]


def test_where_objects_came_from_makes_no_two_of_them_differ() -> None:
    one, other = Original({"a": 1}), Original({"b": 2})
    assert one == other
    assert hash(one) == hash(other)
    assert one != {"a": 1}


def test_a_log_line_with_an_object_does_not_spill_its_document() -> None:
    assert "secret" not in repr(Pod(original=Original({"secret": 1})))


def test_an_open_enum_takes_any_word_but_nothing_else() -> None:
    assert PodPhase("Running") is PodPhase.RUNNING
    assert PodPhase("Hibernating") == "Hibernating"
    number: Any = 5
    with pytest.raises(ValueError, match="5 is not a valid PodPhase"):
        PodPhase(number)
