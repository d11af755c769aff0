"""JSON as the peers read it, so that a configuration that works there works here.

Whereabouts and the CNI libraries are written in Go, whose JSON reader matches keys without regard to case, takes
null for absent and ignores keys it does not know. So does this one, but it says which ignored key is nearly one it
knows: `rangeStart` for `range_start` is the classic, and the price is a range larger than its author thinks.
"""

from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from podtide.cni.errors import Undecodable
from podtide.core.errors import InvalidConfig
from podtide.runtime.foreign_json import UnreadableJson, decode_json

S = TypeVar("S", bound=msgspec.Struct)

Document: TypeAlias = dict[str, Any]


def decode(text: bytes | str, what: str) -> Document:
    """The JSON object in `text`; Undecodable when it holds anything else. `what` names it in the error."""
    if not text.strip():
        raise Undecodable(f"{what} is empty; it should be a JSON object, as in {{...}}")
    try:
        document = decode_json(text)
    except UnreadableJson as error:
        raise Undecodable(f"{what} is not JSON: {_line(error)}") from error
    if not isinstance(document, dict):
        raise Undecodable(f"{what} is not a JSON object; it should be one, as in {{...}}")
    return document


def canonical(document: Document, kind: type[msgspec.Struct], warnings: list[str]) -> Document:
    """The document with its keys as `kind` spells them, without null and without what `kind` does not know.

    Adds a warning for each ignored key that differs from a known one only in underscores, hyphens and case.
    """
    return _canonical(document, _shape(kind), "", warnings)


def read(document: Document, kind: type[S], what: str) -> S:
    """The struct that a canonical document describes; InvalidConfig when a value is of the wrong type."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{what}: {_line(error)}") from error


@cache
def _shape(kind: type[msgspec.Struct]) -> inspect.StructType:
    shape = inspect.type_info(kind)
    assert isinstance(shape, inspect.StructType)
    return shape


def _canonical(document: Document, shape: inspect.StructType, path: str, warnings: list[str]) -> Document:
    known = {field.encode_name.lower(): field for field in shape.fields}
    nearly = {_bare(field.encode_name): field.encode_name for field in shape.fields}
    result: Document = {}
    for key, value in document.items():
        field = known.get(key.lower())
        if field is None:
            if _bare(key) in nearly:
                warnings.append(f"{path}{key} is ignored: the key is {nearly[_bare(key)]}")
        elif value is not None:
            result[field.encode_name] = _value(value, field.type, f"{path}{field.encode_name}.", warnings)
    return result


def _value(value: Any, shape: inspect.Type, path: str, warnings: list[str]) -> Any:
    """The value with every object in it made canonical, where the shape says that there are objects."""
    match value, shape:
        case dict(), inspect.StructType():
            return _canonical(value, shape, path, warnings)
        case list(), inspect.VarTupleType():
            return [_value(item, shape.item_type, path, warnings) for item in value]
        case _:
            return value


def _bare(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _line(error: Exception) -> str:
    """The JSON reader's own words, on one line."""
    return " ".join(str(error).replace("`", "").split())
