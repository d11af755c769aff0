"""What changes between two states of an object, and what an applied one makes of the present one.

Pure functions over JSON documents; where a value is taken apart is the `FieldShape`'s say.
"""

from typing import Any

from msgspec import Struct

from podtide.cluster.embedded.field_sets import MEMBER, FieldSet
from podtide.cluster.embedded.field_shapes import FieldShape, all_fields


class Difference(Struct, frozen=True):
    """The fields that were added or got another value, and those that are gone (with all below them)."""

    changed: FieldSet
    removed: FieldSet


def compare(old: object, new: object, shape: FieldShape) -> Difference:
    """The difference between two versions of an object."""
    changed, removed = _compare(old, new, shape)
    changed.pop(MEMBER, None)
    return Difference(changed, removed)


def _compare(old: object, new: object, shape: FieldShape) -> tuple[FieldSet, FieldSet]:
    before, after = shape.parts(old), shape.parts(new)
    if before is None or after is None:
        return all_fields(new, shape) | {MEMBER: {}}, {step: {} for step in before or ()}
    changed: FieldSet = {}
    removed: FieldSet = {step: {} for step in before if step not in after}
    for step, value in after.items():
        if step not in before:
            changed[step] = all_fields(value, shape.within(step))
        elif before[step] != value:
            below_changed, below_removed = _compare(before[step], value, shape.within(step))
            if below_changed:
                changed[step] = {} if below_changed.keys() == {MEMBER} else below_changed
            if below_removed:
                removed[step] = below_removed
    return changed, removed


def merge(present: Any, applied: Any, shape: FieldShape) -> Any:
    """The present value with all that the applied one states."""
    before, stated = shape.parts(present), shape.parts(applied)
    if before is None or stated is None:
        return applied
    merged = before | {
        step: merge(before[step], value, shape.within(step)) if step in before else value
        for step, value in stated.items()
    }
    return _assembled(applied, merged)


def without(value: Any, gone: FieldSet, kept: FieldSet, shape: FieldShape) -> Any:
    """The value without the fields that are `gone`, and without what that leaves empty unless it is `kept`."""
    parts = shape.parts(value)
    if parts is None:
        return value
    left = {}
    for step, part in parts.items():
        if step not in gone:
            left[step] = part
            continue
        inner = shape.within(step)
        rest = without(part, gone[step], kept.get(step, {}), inner)
        if step in kept or (inner.parts(part) is not None and not _is_bare(rest, shape)):
            left[step] = rest
    return _assembled(value, left)


def _assembled(like: Any, parts: dict[str, Any]) -> Any:
    """The value that has these parts: an object or a list, as the one given."""
    return (
        {step[2:]: part for step, part in parts.items()} if isinstance(like, dict) else list(parts.values())
    )


def _is_bare(value: Any, shape: FieldShape) -> bool:
    """Whether nothing is left of a value: it is empty, or an item of a keyed list with only its key."""
    return not value or (
        isinstance(value, dict) and bool(shape.list_keys) and value.keys() <= set(shape.list_keys)
    )
