"""Field sets as trees, against the plain sets of paths they stand for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.embedded.field_sets import (
    MEMBER,
    FieldSet,
    add,
    copied,
    difference,
    is_member,
    shared,
    subtract,
)

Path = tuple[str, ...]

paths = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"type":"A"}', 'v:"x"']), min_size=1, max_size=4).map(
    tuple
)
path_sets = st.frozensets(paths, max_size=8)


def tree(members: frozenset[Path]) -> FieldSet:
    result: FieldSet = {}
    for path in members:
        node = result
        for step in path:
            node = node.setdefault(step, {})
        node[MEMBER] = {}
    return _leaves_bare(result)


def _leaves_bare(node: FieldSet) -> FieldSet:
    return {step: {} if below.keys() == {MEMBER} else _leaves_bare(below) for step, below in node.items()}


def members(node: FieldSet, path: Path = ()) -> frozenset[Path]:
    found: set[Path] = set()
    for step, below in node.items():
        if step == MEMBER:
            continue
        if is_member(below):
            found.add((*path, step))
        found |= members(below, (*path, step))
    return frozenset(found)


@given(path_sets)
def test_a_tree_holds_the_paths_it_was_made_of(one: frozenset[Path]) -> None:
    assert members(tree(one)) == one


@given(path_sets, path_sets)
def test_adding_is_union(one: frozenset[Path], other: frozenset[Path]) -> None:
    fields = tree(one)
    add(fields, tree(other))
    assert fields == tree(one | other)


@given(path_sets, path_sets)
def test_subtracting_is_difference(one: frozenset[Path], other: frozenset[Path]) -> None:
    fields = tree(one)
    subtract(fields, tree(other))
    assert fields == tree(one - other)


@given(path_sets, path_sets)
def test_subtracting_with_all_below_takes_the_branches_too(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    fields = tree(one)
    subtract(fields, tree(other), with_all_below=True)
    below = {path for path in one if any(path[: len(root)] == root for root in other)}
    assert fields == tree(one - below)


@given(path_sets, path_sets, path_sets)
def test_a_difference_changes_none_of_its_arguments(
    one: frozenset[Path], other: frozenset[Path], third: frozenset[Path]
) -> None:
    first, second, last = tree(one), tree(other), tree(third)
    before = [copied(each) for each in (first, second, last)]
    assert difference(first, second, last) == tree(one - other - third)
    assert [first, second, last] == before


@given(path_sets, path_sets)
def test_what_two_share_is_said_for_each_common_path(one: frozenset[Path], other: frozenset[Path]) -> None:
    assert len(list(shared(tree(one), tree(other)))) == len(one & other)


def test_paths_are_said_as_people_write_them() -> None:
    fields: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {"f:reason": {}}}}}
    assert list(shared(fields, fields)) == ['status.conditions[{"type":"Ready"}].reason']
