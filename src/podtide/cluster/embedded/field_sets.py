"""Sets of fields in the form Kubernetes keeps them in (`fieldsV1`), as trees that are changed in place.

A set is a tree of steps: `{"f:spec": {"f:range": {}, "f:allocations": {".": {}, "f:7": {}}}}` holds `spec.range`,
`spec.allocations` and `spec.allocations.7`, and not `spec`. A step is `f:` and a field's name, `k:` and the key of a
list's item, or `v:` and the value of a set's item. A node belongs to the set when nothing is below it or a `.` is in it.

All operations cost as much as the smaller tree, mostly that of the one or two fields a write has touched.
"""

from collections.abc import Iterator
from typing import Any

FieldSet = dict[str, Any]

MEMBER = "."


def is_member(node: FieldSet) -> bool:
    """Whether the field that a node stands for is itself in the set."""
    return not node or MEMBER in node


def is_field_set(value: object) -> bool:
    """Whether a value from outside is a valid field set."""
    return isinstance(value, dict) and all(
        (step == MEMBER or step[:2] in {"f:", "k:", "v:"}) and is_field_set(node)
        for step, node in value.items()
    )


def copied(fields: FieldSet) -> FieldSet:
    """An independent copy of the set."""
    return {step: copied(node) if node else {} for step, node in fields.items()}


def add(fields: FieldSet, more: FieldSet) -> None:
    """Make `fields` the union of both."""
    for step, node in more.items():
        if step == MEMBER:
            continue
        if step not in fields:
            fields[step] = copied(node)
            continue
        below = fields[step]
        member = is_member(below) or is_member(node)
        below.pop(MEMBER, None)
        add(below, node)
        if member and below:
            below[MEMBER] = {}


def subtract(fields: FieldSet, less: FieldSet, *, with_all_below: bool = False) -> None:
    """Take the members of `less` out of `fields`; on demand also whatever is below them."""
    for step, node in less.items():
        if step == MEMBER or step not in fields:
            continue
        below = fields[step]
        if is_member(node) and with_all_below:
            del fields[step]
            continue
        stays = is_member(below) and not is_member(node)
        below.pop(MEMBER, None)
        subtract(below, node, with_all_below=with_all_below)
        if below and stays:
            below[MEMBER] = {}
        elif not below and not stays:
            del fields[step]


def difference(fields: FieldSet, *less: FieldSet) -> FieldSet:
    """What is in `fields` and in none of the others."""
    result = copied(fields)
    for each in less:
        subtract(result, each)
    return result


def shared(one: FieldSet, other: FieldSet, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields in both, as people write them."""
    for step in one.keys() & other.keys() - {MEMBER}:
        below = (*path, step)
        if is_member(one[step]) and is_member(other[step]):
            yield readable(below)
        yield from shared(one[step], other[step], below)


def readable(path: tuple[str, ...]) -> str:
    """`spec.allocations.7`, `status.conditions[{"type":"Ready"}]`."""
    return "".join(f".{step[2:]}" if step.startswith("f:") else f"[{step[2:]}]" for step in path).lstrip(".")
