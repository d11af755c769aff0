"""CustomResourceDefinitions, generated from the structs, so that what the API server checks is what podtide reads.

The structs say everything: fields and their wire names, which are required, constraints, words of enums, defaults
(those that are `always` sent, see `base`), rules between fields and descriptions; `Api` says the rest. The schemas are
structural: plain nesting without references, as an API server wants them.
"""

from collections.abc import Iterator, Sequence
from inspect import getdoc
from typing import Any, TypeAlias

import msgspec
from msgspec import NODEFAULT, inspect
from msgspec.structs import asdict

from podtide.resources.base import Part, Resource
from podtide.resources.kinds import PODTIDE_KINDS
from podtide.resources.metadata_keys import NAME_LABEL, PODTIDE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.rules import Rule

Schema: TypeAlias = dict[str, Any]

_SCALARS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
    inspect.IntType: "integer",
    inspect.StrType: "string",
}
_LIMITS = {"ge": "minimum", "min_length": "minLength"}
_API_VERSION = "Group and version of the schema this object follows."
_KIND = "The kind of object this is."


def crds(*, with_network_attachments: bool = False) -> list[dict[str, Any]]:
    """The CRDs of podtide's kinds, and with `with_network_attachments` that of Multus's."""
    theirs = [crd(NetworkAttachmentDefinition)] if with_network_attachments else []
    return [crd(kind) for kind in PODTIDE_KINDS] + theirs


def crd(kind: type[Resource]) -> dict[str, Any]:
    """The CRD of one kind."""
    api = kind.api
    names: dict[str, Any] = {
        "kind": api.kind,
        "listKind": api.list_kind,
        "plural": api.plural,
        "singular": api.singular,
    }
    version: dict[str, Any] = {
        "name": api.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(kind)},
    }
    if api.short_names:
        names["shortNames"] = list(api.short_names)
    if api.columns:
        version["additionalPrinterColumns"] = msgspec.to_builtins(list(api.columns))
    if api.status_subresource:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _metadata(kind),
        "spec": {
            "group": api.group,
            "names": names,
            "scope": "Namespaced" if api.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _metadata(kind: type[Resource]) -> dict[str, Any]:
    """The CRD's metadata. Its label says that podtide installed it, and so may remove it: Multus's is never podtide's."""
    name = {"name": f"{kind.api.plural}.{kind.api.group}"}
    return name | {"labels": {NAME_LABEL: PODTIDE}} if kind in PODTIDE_KINDS else name


def _object_schema(kind: type[Resource]) -> Schema:
    """A whole object's schema. The API server knows metadata itself, and `original` never travels."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    schema = _part_schema(
        kind, [field for field in info.fields if field.name not in {"metadata", "original"}]
    )
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"type": "object"},
        **schema["properties"],
    }
    return schema


def rules_of_parts(kind: type[Resource]) -> dict[str, Rule]:
    """The rules in the CRD of a kind, by their CEL."""
    return {rule.cel: rule for part in _parts_in(inspect.type_info(kind)) for rule in part.rules}


def _parts_in(of: inspect.Type) -> Iterator[type[Part]]:
    match of:
        case inspect.StructType(cls=part, fields=fields):
            if issubclass(part, Part):
                yield part
            for field in fields:
                yield from _parts_in(field.type)
        case inspect.Metadata(type=inner) | inspect.UnionType(types=(inner, inspect.NoneType())):
            yield from _parts_in(inner)
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            yield from _parts_in(inner)


def _part_schema(part: type, fields: Sequence[inspect.Field]) -> Schema:
    schema: Schema = {
        "type": "object",
        "description": getdoc(part),
        "properties": {field.encode_name: _schema(field.type) | _default(field) for field in fields},
    }
    if required := [field.encode_name for field in fields if field.required]:
        schema["required"] = required
    if issubclass(part, Part) and part.rules:
        schema["x-kubernetes-validations"] = [
            {"rule": rule.cel, "message": rule.message} for rule in part.rules
        ]
    return schema


def _schema(of: inspect.Type) -> Schema:
    """The schema of one type. A type that no struct uses yet has none: that is a KeyError."""
    schema: Schema
    match of:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            schema = {**_schema(inner), **(extra or {})}
        case inspect.UnionType(types=(inner, inspect.NoneType())):
            schema = _schema(inner)  # None means absent, which an optional field may be anyway
        case inspect.StructType(cls=part, fields=fields):
            schema = _part_schema(part, fields)
        case inspect.ListType(item_type=item):
            schema = {"type": "array", "items": _schema(item)}
        case inspect.DictType(value_type=value):
            schema = {"type": "object", "additionalProperties": _schema(value)}
        case inspect.EnumType(cls=words):
            schema = {"type": "string", "enum": [word.value for word in words]}
        case _:
            limits = {_LIMITS[name]: limit for name, limit in asdict(of).items() if limit is not None}
            schema = {"type": _SCALARS[type(of)], **limits}
    return schema


def _default(field: inspect.Field) -> Schema:
    """The default for the API server to fill in: the value of an `always` field."""
    if field.default_factory in (NODEFAULT, list, dict):
        return {}
    value = field.default_factory()
    return {} if isinstance(value, Part) else {"default": msgspec.to_builtins(value)}
