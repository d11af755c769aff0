"""JSON as the peers read it, so that a configuration that works there works here.

Whereabouts and the CNI libraries are written in Go, whose JSON reader matches keys without regard to case, takes
null for absent and ignores keys it does not know. So does this one, except that a configuration with a key that is
nearly one it knows (`rangeStart` for `range_start`) is refused: see `core.similar_keys`.
"""

from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from podtide.cni.errors import Undecodable
from podtide.core.errors import InvalidConfig
from podtide.core.similar_keys import near_miss
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


def canonical(document: Document, kind: type[msgspec.Struct]) -> Document:
    """The document with its keys as `kind` spells them, without null and without what `kind` does not know."""
    return _canonical(document, _shape(kind), "", [])


def refuse_misspelt(document: Document, kind: type[msgspec.Struct], what: str) -> None:
    """InvalidConfig when a key of the document, or of an object in it, is nearly one that `kind` knows there."""
    misspelt: list[tuple[str, str]] = []
    _canonical(document, _shape(kind), "", misspelt)
    if misspelt:
        questions = ", ".join(f"{key!r} (did you mean {meant!r}?)" for key, meant in misspelt)
        raise InvalidConfig(f"{what} has no key {questions}: correct the spelling, or remove it")


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


def _canonical(
    document: Document, shape: inspect.StructType, path: str, misspelt: list[tuple[str, str]]
) -> Document:
    known = {field.encode_name.lower(): field for field in shape.fields}
    result: Document = {}
    for key, value in document.items():
        field = known.get(key.lower())
        if field is None:
            if meant := near_miss(key, (each.encode_name for each in shape.fields)):
                misspelt.append((f"{path}{key}", meant))
        elif value is not None:
            result[field.encode_name] = _value(value, field.type, f"{path}{field.encode_name}", misspelt)
    return result


def _value(value: Any, shape: inspect.Type, path: str, misspelt: list[tuple[str, str]]) -> Any:
    """The value with every object in it made canonical, where the shape says that there are objects."""
    match value, shape:
        case dict(), inspect.StructType():
            return _canonical(value, shape, f"{path}.", misspelt)
        case list(), inspect.VarTupleType():
            return [
                _value(item, shape.item_type, f"{path}[{number}]", misspelt)
                for number, item in enumerate(value)
            ]
        case _:
            return value


def _line(error: Exception) -> str:
    """The JSON reader's own words, on one line."""
    return " ".join(str(error).replace("`", "").split())
