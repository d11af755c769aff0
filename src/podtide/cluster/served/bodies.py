"""Bodies of requests: read, and brought into the form in which the rules of the API server expect a document.

Documents come from any client, so one that is not an object of the kind is refused before any rule sees it. `null` and
an empty name or version mean that nothing is said, as they do to the API server.
"""

from typing import Any

import msgspec
from aiohttp import web

from podtide.cluster.embedded.records import Document
from podtide.cluster.served.answers import JSON
from podtide.cluster.served.protobuf import PROTOBUF, read_namespace
from podtide.cluster.served.statuses import BadRequest, UnsupportedMediaType
from podtide.cluster.served.target import ApiTarget
from podtide.resources.base import ObjectMeta
from podtide.resources.codec import from_document
from podtide.resources.namespace import Namespace
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.runtime.foreign_json import DEEPEST, is_deeper
from podtide.runtime.http_port import read_body

YAML = "application/yaml"
_QUANTITIES = frozenset(("requests", "limits", "capacity", "allocatable"))
"""The fields of pods and nodes that hold quantities: a number is taken for one, and kept as text."""
_MAY_BE_EMPTY = ("name", "namespace", "generateName", "uid", "resourceVersion", "creationTimestamp")


async def read_object(target: ApiTarget, request: web.Request) -> Document:
    """The whole object that a body holds."""
    if request.content_type == PROTOBUF and target.kind is Namespace:
        return whole_object(target, read_namespace(await read_body(request)))
    if request.content_type not in {JSON, YAML}:
        raise UnsupportedMediaType(
            f"a body of {request.content_type} is not read here: send {JSON} (with kubectl: create -f)"
        )
    return whole_object(target, parsed(await read_body(request)))


def whole_object(target: ApiTarget, value: Any) -> Document:
    """A value as an object of the kind, in the place the path names."""
    document = placed(target, value)
    from_document(target.kind, document)
    return document


def placed(target: ApiTarget, value: Any) -> Document:
    """A value as a document of the kind, which need not be whole, in the place the path names."""
    api = target.kind.api
    if not isinstance(value, dict):
        raise BadRequest(f"the body is not an object: send a {api.kind}")
    document: Document = _without_nulls(value)
    if target.kind in (Node, Pod):
        document = _with_quantities_as_text(document)
    stated = (document.get("apiVersion"), document.get("kind"))
    if stated != (api.api_version, api.kind):
        raise BadRequest(
            f"the body is a {stated[1]} of {stated[0]}, and the path one of {api.kind} of {api.api_version}: make them agree"
        )
    metadata = document.get("metadata", {})
    try:
        msgspec.convert(metadata, ObjectMeta)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the metadata of this {api.kind} cannot be read: {error}") from error
    said = {field: value for field, value in metadata.items() if value or field not in _MAY_BE_EMPTY}
    for field, in_path in (("namespace", target.namespace), ("name", target.name)):
        if in_path and said.setdefault(field, in_path) != in_path:
            raise BadRequest(
                f"the body is about {field} {said[field]!r}, and the path about {in_path!r}: make them agree"
            )
    return {**document, "metadata": said}


def parsed(body: bytes) -> Any:
    """What a body says, in JSON or in YAML."""
    too_deep = BadRequest(f"the body is nested too deeply: {DEEPEST} levels are read, and no more")
    try:
        value = _parsed(body)
    except RecursionError:
        raise too_deep from None
    if is_deeper(value, DEEPEST):
        raise too_deep
    return value


def _parsed(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        not_json = error
    import yaml  # noqa: PLC0415 - kubectl and our adapter send JSON, so it is rarely needed

    try:
        # Few words can stand for a value without end, or for one that fills the memory.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, yaml.SafeLoader)):
            raise BadRequest("the body has a YAML alias: write out what it stands for")
        value = msgspec.to_builtins(yaml.safe_load(body), str_keys=True)
        msgspec.json.encode(value)  # raises if it has text that is not valid Unicode
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
    ):  # the last two: an invalid date, or a key that is not a string
        raise BadRequest(f"the body is neither JSON nor YAML: {not_json}") from None
    return value


def _with_quantities_as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_quantities_as_text(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {resource: _quantity(amount) for resource, amount in inner.items()}
        if name in _QUANTITIES and isinstance(inner, dict)
        else _with_quantities_as_text(inner)
        for name, inner in value.items()
    }


def _quantity(amount: Any) -> Any:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return msgspec.json.encode(amount).decode() if is_number else amount


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
