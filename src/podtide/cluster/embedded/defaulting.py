"""What an API server fills in: the defaults of a kind's CRD, wherever the object they belong to is there.

Read off the CRD once per kind. Branches without a default are left out, so a write costs only what can be filled in.
"""

from typing import Any

from msgspec import Struct

from podtide.resources.crds import Schema


class Defaults(Struct, frozen=True):
    """The defaults of one value, and of those within it."""

    values: dict[str, Any] = {}
    """The fields to fill in. They are all scalars, so that objects can share them."""
    fields: "dict[str, Defaults]" = {}
    each: "Defaults | None" = None
    """For the items of a list and the values of a map."""

    def fill(self, value: Any) -> Any:
        """A copy of the value with the defaults filled in."""
        if self is NO_DEFAULTS:
            return value
        if isinstance(value, list):
            return [self.each.fill(item) for item in value] if self.each else value
        if not isinstance(value, dict):
            return value
        if self.each:
            return {name: self.each.fill(item) for name, item in value.items()}
        within = {name: inner.fill(value[name]) for name, inner in self.fields.items() if name in value}
        return {**self.values, **value, **within}


NO_DEFAULTS = Defaults()


def defaults_in(schema: Schema) -> Defaults:
    """The defaults a schema has."""
    properties: dict[str, Schema] = schema.get("properties", {})
    below = {name: defaults_in(inner) for name, inner in properties.items()}
    return Defaults(
        values={name: inner["default"] for name, inner in properties.items() if "default" in inner},
        fields={name: inner for name, inner in below.items() if inner != NO_DEFAULTS},
        each=_defaults_of_each(schema),
    )


def _defaults_of_each(schema: Schema) -> Defaults | None:
    each = schema.get("items") or schema.get("additionalProperties")
    defaults = defaults_in(each) if each else NO_DEFAULTS
    return defaults if defaults != NO_DEFAULTS else None
