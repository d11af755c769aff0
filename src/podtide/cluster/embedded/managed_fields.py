"""Who owns which field: the entries of `metadata.managedFields`, and how writes change them.

There is one entry per manager, operation and subresource. Replacing (`Update`) takes over what it changed. Applying
(`Apply`) owns exactly what it states: a field that it no longer states is removed if it has no other owner, a field that
others own and that would get another value is a conflict, and a field stated alike by several is owned by all of them.
The same name with another operation is another manager, as in Kubernetes.
"""

from typing import Any

from msgspec import Struct

from podtide.cluster.embedded.field_sets import (
    MEMBER,
    FieldSet,
    add,
    copied,
    difference,
    is_field_set,
    shared,
    subtract,
)
from podtide.cluster.embedded.field_shapes import FieldShape, all_fields, stated_fields
from podtide.cluster.embedded.merging import Difference, compare, merge, without
from podtide.cluster.port import Conflict

Entry = dict[str, Any]
_UPDATE, _APPLY = "Update", "Apply"


class Writer(Struct, frozen=True):
    """The manager, operation, subresource and time of a write."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""

    def entry(self, operation: str, fields: FieldSet) -> Entry:
        """The writer's entry."""
        entry = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        return entry | {"subresource": self.subresource} if self.subresource else entry

    def owns(self, entry: Entry, operation: str) -> bool:
        """Whether an entry is this writer's."""
        return (entry["manager"], entry["operation"], entry.get("subresource", "")) == (
            self.manager,
            operation,
            self.subresource,
        )


class Owned(Struct, frozen=True):
    """The content of an object that managers own, and the managedFields entries."""

    content: dict[str, Any]
    entries: list[Entry]


def is_entry(value: object) -> bool:
    """Whether a value from outside is a valid managedFields entry."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("manager"), str)
        and value.get("operation") in {_UPDATE, _APPLY}
        and is_field_set(value.get("fieldsV1"))
    )


def after_create(content: dict[str, Any], shape: FieldShape, writer: Writer) -> Owned:
    """The ownership of a new object: its creator owns all of it."""
    fields = all_fields(content, shape)
    fields.pop(MEMBER, None)
    fields.get("f:metadata", {}).pop(MEMBER, None)  # see `_compare`
    return Owned(content, [writer.entry(_UPDATE, fields)] if fields else [])


def after_update(
    entries: list[Entry], old: dict[str, Any], new: dict[str, Any], shape: FieldShape, writer: Writer
) -> Owned:
    """The ownership after `writer` replaced `old` by `new`."""
    happened = _compare(old, new, shape)
    own = _own(entries, writer, _UPDATE)
    others = _yielding(entries, own, happened)
    fields = copied(own["fieldsV1"]) if own else {}
    subtract(fields, happened.removed, with_all_below=True)
    add(fields, happened.changed)
    if own and own["fieldsV1"] == fields:
        return Owned(new, _in_order([*others, own]))
    return Owned(new, _in_order([*others, writer.entry(_UPDATE, fields)] if fields else others))


def after_apply(
    before: Owned, applied: dict[str, Any], shape: FieldShape, writer: Writer, *, force: bool
) -> Owned:
    """The ownership after applying `applied`; Conflict when another manager owns a field with another value."""
    old, entries = before.content, before.entries
    own = _own(entries, writer, _APPLY)
    stated = stated_fields(applied, shape)
    kept = copied(stated)
    for entry in entries:
        if entry is not own:
            add(kept, entry["fieldsV1"])
    content = merge(old, applied, shape)
    if own:
        content = without(content, difference(own["fieldsV1"], kept), kept, shape)
    happened = _compare(old, content, shape)
    if not force:
        _refuse_conflicts(entries, own, happened)
    others = _yielding(entries, own, happened)
    if own and content == old and own["fieldsV1"] == stated:
        return Owned(content, _in_order([*others, own]))
    return Owned(content, _in_order([*others, writer.entry(_APPLY, stated)] if stated else others))


def _compare(old: dict[str, Any], new: dict[str, Any], shape: FieldShape) -> Difference:
    # Every object has metadata: it has no owner itself, only the fields in it have.
    return compare({"metadata": {}, **old}, {"metadata": {}, **new}, shape)


def _own(entries: list[Entry], writer: Writer, operation: str) -> Entry | None:
    return next((entry for entry in entries if writer.owns(entry, operation)), None)


def _yielding(entries: list[Entry], own: Entry | None, happened: Difference) -> list[Entry]:
    """The other managers' entries, without the fields that were taken over or are gone."""
    left = []
    touched = happened.changed.keys() | happened.removed.keys()
    for entry in entries:
        if entry is own:
            continue
        if touched.isdisjoint(entry["fieldsV1"]):
            left.append(entry)
            continue
        fields = copied(entry["fieldsV1"])
        subtract(fields, happened.changed)
        subtract(fields, happened.removed, with_all_below=True)
        if fields:
            left.append({**entry, "fieldsV1": fields})
    return left


def _refuse_conflicts(entries: list[Entry], own: Entry | None, happened: Difference) -> None:
    taken = {
        f"{field} of {entry['manager']!r} ({entry['operation']})"
        for entry in entries
        if entry is not own
        for field in shared(entry["fieldsV1"], happened.changed)
    }
    if taken:
        raise Conflict(
            f"the apply would change {', '.join(sorted(taken))}: leave it out, state the same value, or apply with force"
        )


def _in_order(entries: list[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry["operation"], entry.get("time", ""), entry["manager"]))
