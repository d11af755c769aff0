"""Between structs and the wire, without losing what others wrote.

A struct names only the fields podtide uses. Where podtide replaces an object whole, the document it was read from
rides along (`Resource.original`), and writing lays the struct over it: known fields come from the struct, so that a
cleared one is gone; unknown ones stay, at every depth. Documents are values: nothing here changes one it was given,
and what it returns may share parts with what it was given.

`metadata.managedFields` is the exception: it is dropped on reading. An API server that gets none in a replace keeps its
own record (and refuses an apply that carries one), while a stale one sent back could undo it.
"""

from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, ValidationError
from msgspec.structs import replace

from podtide.core.errors import InvalidInput
from podtide.resources.base import Original, Resource
from podtide.resources.shapes import Document, shape_of
from podtide.runtime.foreign_json import NOT_JSON, UnreadableJson, decode_json

R = TypeVar("R", bound=Resource)


class InvalidObject(InvalidInput):
    """A document that is not an object of the kind it should be."""


def to_document(item: Resource, *, keep_unknown: bool = True) -> dict[str, Any]:
    """The object as a JSON document, with apiVersion and kind.

    With `keep_unknown` it carries what the object was read with and no struct names; without, only what the struct
    says, which is what server-side apply wants. InvalidObject where that unknown is nested too deeply.
    """
    shape = shape_of(type(item))
    original = item.original
    known = msgspec.to_builtins(replace(item, original=None) if original else item)
    shape.drop_empty_parts(known)
    if keep_unknown and original:
        known = shape.overlay(known, _carried(_document_of(item, original)))
    return {"apiVersion": item.api.api_version, "kind": item.api.kind, **known}


def encode(item: Resource) -> bytes:
    """`to_document` as JSON."""
    return msgspec.json.encode(to_document(item))


def from_document(kind: type[R], document: Document) -> R:
    """The object a document holds; apiVersion and kind may be missing, as in the items of a list."""
    _check_kind(kind, document.get("apiVersion"), document.get("kind"))
    item = _convert(kind, document)
    return replace(item, original=Original(_carried(document))) if kind.api.keeps_unknown else item


def from_written(kind: type[R], document: Document, data: bytes) -> R:
    """The object in a document of its kind that was just encoded to `data`."""
    item = _convert(kind, document)
    return replace(item, original=Original(data)) if kind.api.keeps_unknown else item


def decode(kind: type[R], data: bytes) -> R:
    """The object that JSON text holds, decoded straight into the struct where it fits.

    Where it does not, it may only have Go's nulls in it, and what is wrong is better said about a document.
    """
    try:
        item: R = _decoder(kind).decode(data)
        stated = _KIND_DECODER.decode(data) if kind.api.keeps_unknown else None
    except NOT_JSON:
        return from_document(kind, _any_document(kind, data))
    if stated is None:
        return item
    _check_kind(kind, stated.api_version, stated.kind)
    return replace(item, original=Original(data))


class _StatedKind(Struct, rename="camel"):
    """The kind that a document states."""

    api_version: str | None = None
    kind: str | None = None


_KIND_DECODER = msgspec.json.Decoder(_StatedKind)


def _check_kind(kind: type[Resource], api_version: object, name: object) -> None:
    api = kind.api
    stated = (api.api_version if api_version is None else api_version, api.kind if name is None else name)
    if stated != (api.api_version, api.kind):
        raise InvalidObject(
            f"a document of {stated[0]} {stated[1]} was read as {api.api_version} {api.kind}: ask for it by its own kind"
        )


def _any_document(kind: type[Resource], data: bytes) -> Document:
    try:
        return decode_json(data, dict[str, Any])
    except UnreadableJson as error:
        raise InvalidObject(f"cannot read a {kind.api.kind}: it is not a JSON object: {error}") from error


@cache
def _decoder(kind: type[Resource]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _convert(kind: type[R], document: Document) -> R:
    with suppress(ValidationError):
        return msgspec.convert(document, kind)
    try:
        return msgspec.convert(shape_of(kind).without_nulls(document), kind)
    except ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        where = path.strip("`").removeprefix("$") or "."
        raise InvalidObject(
            f"{kind.api.kind} {_name(document)} cannot be read: {where}: {what}; correct that field"
        ) from error


def _name(document: Document) -> str:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return "without a name"
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return f"{namespace}/{name}" if namespace else f"{name or 'without a name'}"


def _document_of(item: Resource, original: Original) -> Document:
    try:
        return original.document
    except UnreadableJson as error:
        raise InvalidObject(
            f"{item.api.kind} {item.key} cannot be written with all that others wrote in it: {error}"
        ) from error


def _carried(document: Document) -> Document:
    metadata = document.get("metadata") or {}
    if "managedFields" not in metadata:
        return document
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": kept}
