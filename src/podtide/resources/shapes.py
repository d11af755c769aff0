"""Where a kind's document holds fields that no struct names, and what a `null` in it stands for.

A shape is the part of a struct's type that matters when documents are merged or mended: which names are known,
and in which of them further parts lie. It is read off the struct once.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any, TypeAlias

from msgspec import Struct, inspect

from podtide.resources.base import Part, Resource

Document: TypeAlias = dict[str, Any]


class PartShape(Struct, frozen=True):
    """A struct: names it knows, and what lies in them."""

    known: frozenset[str]
    inner: "dict[str, PartShape | ListShape | MapShape]"
    """The fields that hold further parts."""
    implied: "dict[str, PartShape]"
    """Those of them that hold a part even where the document leaves it out."""
    required: dict[str, Callable[[], object]]
    """What `null` stands for where something must be: an empty list or map, else `null` still, to be refused."""

    def overlay(self, new: Document, old: Document) -> Document:
        """`new`, with the fields of `old` that no struct names."""
        if not self.inner and self.known.issuperset(old):
            return new
        result = new | {name: value for name, value in old.items() if name not in self.known}
        for name, shape in self.inner.items():
            before = old.get(name)
            if before is None:
                continue
            if name in new:
                result[name] = shape.overlay(new[name], before)
            elif name in self.implied and (unknown := self.implied[name].overlay({}, before)):
                result[name] = unknown
        return result

    def drop_empty_parts(self, document: Document) -> None:
        """Take out of a document, in place, the implied parts that say nothing: one at its default is left out.

        To server-side apply, `{}` is not nothing: where the manager owned a field within, it becomes a `null`.
        """
        for name, shape in self.implied.items():
            part = document.get(name)
            if part and shape.implied:
                shape.drop_empty_parts(part)
            if part == {}:
                del document[name]

    def without_nulls(self, document: Any) -> Any:
        """The document with each `null` read as Go means it: absent, or empty where a value is required.

        What is not of this shape is returned as it is, for the check of types to report.
        """
        if not isinstance(document, dict):
            return document
        result: Document = {}
        for name, value in document.items():
            if name in self.inner and value is not None:
                result[name] = self.inner[name].without_nulls(value)
            elif value is not None:
                result[name] = value
            elif name in self.required:
                result[name] = self.required[name]()
        return result


class ListShape(Struct, frozen=True):
    """A list of parts, told apart by their merge key."""

    item: PartShape
    merge_key: str

    def overlay(self, new: list[Document], old: list[Document]) -> list[Document]:
        """`new`, each item with the unknown fields of the old item of the same merge key."""
        if not self.item.inner and all(map(self.item.known.issuperset, old)):
            return new
        earlier: dict[object, list[Document]] = {}  # one key may occur twice: first goes with first
        for item in reversed(old):
            earlier.setdefault(item.get(self.merge_key), []).append(item)
        return [
            self.item.overlay(item, same.pop()) if (same := earlier.get(item.get(self.merge_key))) else item
            for item in new
        ]

    def without_nulls(self, document: Any) -> Any:
        """Each item with its nulls read."""
        if not isinstance(document, list):
            return document
        return [self.item.without_nulls(item) for item in document]


class MapShape(Struct, frozen=True):
    """A map of parts. An entry whose merge key changed is about another thing, whatever its name."""

    value: PartShape
    merge_key: str

    def overlay(self, new: dict[str, Document], old: dict[str, Document]) -> dict[str, Document]:
        """`new`, each entry with the unknown fields of the old entry of that name, if it is about the same thing."""
        return {
            name: self.value.overlay(value, old[name])
            if name in old and value.get(self.merge_key) == old[name].get(self.merge_key)
            else value
            for name, value in new.items()
        }

    def without_nulls(self, document: Any) -> Any:
        """Each entry with its nulls read."""
        if not isinstance(document, dict):
            return document
        return {name: self.value.without_nulls(value) for name, value in document.items()}


Shape: TypeAlias = PartShape | ListShape | MapShape


@cache
def shape_of(part: type[Part]) -> PartShape:
    """The shape of a struct."""
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    bare = {field.encode_name: _bare(field.type) for field in info.fields}
    return PartShape(
        known=frozenset(bare) | ({"apiVersion", "kind"} if issubclass(part, Resource) else set()),
        inner={name: shape for name, of in bare.items() if (shape := _shape(of))},
        implied={
            field.encode_name: shape_of(type(field.default))
            for field in info.fields
            if isinstance(field.default, Part)
        },
        required={
            field.encode_name: _EMPTY.get(type(bare[field.encode_name]), NoneType)
            for field in info.fields
            if field.required
        },
    )


_EMPTY: dict[type[inspect.Type], Callable[[], object]] = {inspect.ListType: list, inspect.DictType: dict}


def _shape(of: inspect.Type) -> Shape | None:
    if isinstance(of, inspect.ListType) and (item := _part(of.item_type)):
        return ListShape(shape_of(item), _merge_key(item))
    if isinstance(of, inspect.DictType) and (value := _part(of.value_type)):
        return MapShape(shape_of(value), _merge_key(value))
    part = _part(of)
    return shape_of(part) if part else None


def _merge_key(part: type[Part]) -> str:
    assert part.merge_key is not None, f"{part.__name__} is one of several: it needs a merge_key"
    return part.merge_key


def _part(of: inspect.Type) -> type[Part] | None:
    bare = _bare(of)
    return bare.cls if isinstance(bare, inspect.StructType) and issubclass(bare.cls, Part) else None


def _bare(of: inspect.Type) -> inspect.Type:
    """The type without its description and without `| None`."""
    if isinstance(of, inspect.Metadata):
        return _bare(of.type)
    if isinstance(of, inspect.UnionType):
        (only,) = (each for each in of.types if not isinstance(each, inspect.NoneType))
        return _bare(only)
    return of
