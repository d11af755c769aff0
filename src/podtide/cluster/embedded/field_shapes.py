"""How the values of a kind are taken apart into fields that managers can own one by one.

Objects and maps are owned field by field; a list is owned whole, unless the kind's CRD calls it a map of items with a
key. That is read off the structs, where it stands as in the CRD (`x-kubernetes-list-type`). Of metadata it is known:
finalizers are a set of values, owners a map by uid. Fields that no struct names are treated as Kubernetes treats what
has no schema: objects field by field, lists whole.
"""

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct, inspect

from podtide.cluster.embedded.field_sets import MEMBER, FieldSet
from podtide.resources.base import Resource


class FieldShape(Struct, frozen=True):
    """How one value is split into fields. `inner` is for the items of a keyed list and the values of a map."""

    fields: "dict[str, FieldShape]" = {}
    inner: "FieldShape | None" = None
    list_keys: tuple[str, ...] = ()
    is_set: bool = False
    is_whole: bool = False

    def parts(self, value: object) -> dict[str, Any] | None:
        """The fields of a value by their step, or None when it can only be owned whole."""
        if isinstance(value, dict):
            return None if self.is_whole else {f"f:{name}": item for name, item in value.items()}
        if not isinstance(value, list):
            return None
        if self.list_keys and all(isinstance(item, dict) for item in value):
            return {f"k:{_text({key: item.get(key) for key in self.list_keys})}": item for item in value}
        if self.is_set:
            return {f"v:{_text(item)}": item for item in value}
        return None

    def within(self, step: str) -> "FieldShape":
        """The shape of the value at a step."""
        return self.fields.get(step[2:]) or self.inner or _UNKNOWN


_CONTAINERS = (dict, list)
_UNKNOWN = FieldShape()
_METADATA = FieldShape(
    fields={
        "finalizers": FieldShape(is_set=True),
        "ownerReferences": FieldShape(list_keys=("uid",), inner=FieldShape(is_whole=True)),
    }
)


def all_fields(value: object, shape: FieldShape) -> FieldSet:
    """Every field of a value and every object and list on the way to it: what appears when the value does."""
    parts = shape.parts(value)
    if not parts:
        return {}
    fields = {
        step: all_fields(part, shape.within(step)) if isinstance(part, _CONTAINERS) else {}
        for step, part in parts.items()
    }
    fields[MEMBER] = {}
    return fields


def stated_fields(value: object, shape: FieldShape) -> FieldSet:
    """The fields a value states: those without anything below, and the items of keyed lists."""
    parts = shape.parts(value)
    if not parts:
        return {}
    fields = {step: stated_fields(part, shape.within(step)) for step, part in parts.items()}
    for step, below in fields.items():
        if step.startswith("k:") and below:
            below[MEMBER] = {}
    return fields


@cache
def field_shape_of(kind: type[Resource]) -> FieldShape:
    """How objects of a kind are split into fields."""
    shape = _shape(inspect.type_info(kind))
    return FieldShape(fields={**shape.fields, "metadata": _METADATA})


def _shape(of: inspect.Type, schema: dict[str, Any] | None = None) -> FieldShape:
    match of:
        case inspect.Metadata():
            return _shape(of.type, of.extra_json_schema or schema)
        case inspect.UnionType():
            (only,) = (each for each in of.types if not isinstance(each, inspect.NoneType))
            return _shape(only, schema)
        case inspect.StructType():
            return FieldShape(fields={field.encode_name: _shape(field.type) for field in of.fields})
        case inspect.DictType():
            return FieldShape(inner=_shape(of.value_type))
        case inspect.ListType():
            return _list_shape(of, schema or {})
        case _:
            return FieldShape()


def _list_shape(of: inspect.ListType, schema: dict[str, Any]) -> FieldShape:
    if schema.get("x-kubernetes-list-type") == "map":
        return FieldShape(inner=_shape(of.item_type), list_keys=tuple(schema["x-kubernetes-list-map-keys"]))
    return FieldShape()


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
