"""Objects of every kind, and ways to disturb their documents, read off the structs' types."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from podtide.resources.base import Part, Resource
from podtide.resources.kinds import ALL_KINDS

kinds = st.sampled_from(ALL_KINDS)
json_values = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "word", [], [None], ["word"], {}, {"a": None}, [{"b": [2]}]]
)
"""JSON of every shape."""


def values(of: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a type as msgspec sees it."""
    found: st.SearchStrategy[Any]
    match of:
        case inspect.Metadata(extra_json_schema={"format": "cidr"}):
            found = st.sampled_from(["10.0.0.0/8", "192.168.2.225/28", "2001:db8::/64"])
        case inspect.Metadata(extra_json_schema={"pattern": pattern}):
            found = st.from_regex(pattern, fullmatch=True)
        case inspect.Metadata(type=inner):
            found = values(inner)
        case inspect.UnionType(types=types):
            found = st.one_of(*(values(each) for each in types))
        case inspect.StructType(cls=part, fields=fields):
            found = st.builds(part, **{field.name: values(field.type) for field in fields})
        case inspect.ListType(item_type=item):
            found = st.lists(values(item), max_size=2)
        case inspect.DictType(value_type=value):
            found = st.dictionaries(st.text(max_size=3), values(value), max_size=2)
        case inspect.EnumType(cls=words):
            found = st.sampled_from(words)
        case _:
            found = _SCALARS[type(of)](of)
    return found


_SCALARS: dict[type[inspect.Type], Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.NoneType: lambda _: st.none(),
    inspect.CustomType: lambda _: st.none(),  # `original`, which no new object has
    inspect.BoolType: lambda _: st.booleans(),
    inspect.IntType: lambda of: st.integers(-(2**63) if of.ge is None else of.ge, 2**63 - 1),
    inspect.FloatType: lambda of: st.floats(min_value=of.ge, allow_nan=False, allow_infinity=False),
    inspect.StrType: lambda of: st.text(min_size=of.min_length or 0, max_size=3),
}


@cache
def objects_of(kind: type[Resource]) -> st.SearchStrategy[Resource]:
    """Any objects of a kind."""
    return values(inspect.type_info(kind))


objects = kinds.flatmap(objects_of)
"""Any objects of any kind."""

pairs = kinds.flatmap(lambda kind: st.tuples(objects_of(kind), objects_of(kind)))
"""Any two objects of one kind."""


def parts(of: type[Part] | inspect.Type, document: Any) -> Iterator[tuple[type[Part], dict[str, Any]]]:
    """Every part in an object's document, with its struct, outermost first."""
    info = of if isinstance(of, inspect.Type) else inspect.type_info(of)
    match info:
        case inspect.Metadata(type=inner):
            yield from parts(inner, document)
        case inspect.UnionType(types=(inner, inspect.NoneType())):
            yield from parts(inner, document)
        case inspect.StructType(cls=part, fields=fields) if issubclass(part, Part):
            yield part, document
            for field in fields:
                if document.get(field.encode_name) is not None:
                    yield from parts(field.type, document[field.encode_name])
        case inspect.ListType(item_type=item):
            for each in document:
                yield from parts(item, each)
        case inspect.DictType(value_type=value):
            for each in document.values():
                yield from parts(value, each)
        case _:
            return


def optional_fields(part: type[Part]) -> list[str]:
    """The wire names of the fields a document may leave out."""
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    return [field.encode_name for field in info.fields if not field.required]


def field_names(part: type[Part]) -> list[str]:
    """The wire names of all fields."""
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    return [field.encode_name for field in info.fields]


def copy(document: dict[str, Any]) -> dict[str, Any]:
    """A document of its own."""
    again: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return again
