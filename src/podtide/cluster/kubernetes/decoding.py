"""From the bytes of an answer to objects, in one pass where the kind allows it.

Pods and nodes come by the thousand and in kilobytes each. For such kinds an event or a page is decoded straight into
structs, envelope and all, and what no struct names is skipped without becoming a Python object. Where that does not
fit (a kind whose unknown fields are kept, Go's nulls, an error in place of an object), the document is decoded and read
by `resources.codec`.

What is not what was asked for is Unavailable, never an empty list or an object without a name: of an answer that cannot
be read, nothing may be concluded.
"""

from functools import cache
from typing import Any, Generic

import msgspec
from msgspec import Struct, field

from podtide.cluster.kubernetes.answers import read_status, status_error
from podtide.cluster.port import Change, ClusterError, Page, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.codec import InvalidObject, decode, from_document
from podtide.runtime.foreign_json import NOT_JSON


class _ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str
    more: str = field(default="", name="continue")


class _List(Struct, Generic[R], frozen=True):
    items: list[R]
    metadata: _ListMeta


class _Line(Struct, Generic[R], frozen=True):
    type: Change
    object: R


class _RawList(Struct, frozen=True):
    metadata: _ListMeta
    items: list[dict[str, Any]] | None


class _RawLine(Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Marked(Struct, frozen=True):
    """The metadata of a bookmark."""

    metadata: _ListMeta


def decode_item(kind: type[R], body: bytes, doing: str) -> R:
    """The object an answer holds."""
    try:
        item = decode(kind, body)
    except InvalidObject as error:
        raise _unreadable(doing, error) from error
    if not item.metadata.resource_version:
        raise _unreadable(doing, f"it is not a {kind.api.kind}")
    return item


def decode_page(kind: type[R], body: bytes, doing: str) -> Page[R]:
    """The page of a list that an answer holds."""
    if not kind.api.keeps_unknown:
        try:
            page: _List[R] = _list_decoder(kind).decode(body)
        except NOT_JSON:
            pass
        else:
            return Page(page.items, page.metadata.resource_version, page.metadata.more)
    try:
        raw = msgspec.json.decode(body, type=_RawList)
        items = [from_document(kind, document) for document in raw.items or ()]
    except (*NOT_JSON, InvalidObject) as error:
        raise _unreadable(doing, error) from error
    return Page(items, raw.metadata.resource_version, raw.metadata.more)


def decode_event(kind: type[R], line: bytes, doing: str) -> WatchEvent[R]:
    """The event a line of a watch holds; an ERROR event is raised as what it means."""
    if not kind.api.keeps_unknown:
        try:
            event: _Line[R] = _line_decoder(kind).decode(line)
        except NOT_JSON:
            pass
        else:
            return _event(event.type, event.object, doing)
    try:
        raw = msgspec.json.decode(line, type=_RawLine)
        if raw.type == "ERROR":
            raise _error(bytes(raw.object), doing)
        change = Change(raw.type)
        if change is Change.BOOKMARK:
            mark = msgspec.json.decode(raw.object, type=_Marked)
            return WatchEvent(change, None, mark.metadata.resource_version)
        item = decode(kind, bytes(raw.object))
    except (*NOT_JSON, InvalidObject) as error:
        raise _unreadable(doing, error) from error
    return _event(change, item, doing)


def _event(change: Change, item: R, doing: str) -> WatchEvent[R]:
    version = item.metadata.resource_version
    if not version:
        raise _unreadable(doing, "an event has no version to resume from")
    return WatchEvent(change, None if change is Change.BOOKMARK else item, version)


def _error(document: bytes, doing: str) -> ClusterError:
    status = read_status(document)
    if status is None:
        return Unavailable(f"cannot {doing}: the server sent an error without saying which")
    return status_error(doing, status)


def _unreadable(doing: str, what: Exception | str) -> Unavailable:
    return Unavailable(f"cannot {doing}: what the server sent cannot be read: {' '.join(str(what).split())}")


@cache
def _list_decoder(kind: type[Resource]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]  # a type made at run time


@cache
def _line_decoder(kind: type[Resource]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Line[kind])  # type: ignore[valid-type]  # a type made at run time


class LineSplitter:
    """Takes bytes as they come and gives the lines that are whole.

    A line may be megabytes long and come in a thousand pieces, so the pieces are joined once, at its end.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    @property
    def is_within_a_line(self) -> bool:
        """Whether the last line has not ended yet."""
        return bool(self._pieces)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends; empty lines are left out."""
        first, *others = data.split(b"\n")
        if not others:
            if first:
                self._pieces.append(first)
            return []
        *whole, last = others
        lines = [b"".join((*self._pieces, first)), *whole]
        self._pieces = [last] if last else []
        return [line for line in lines if line]
