"""A configuration's text with another IPAM type in it, and every other byte as its author wrote it.

Decoding and encoding again would reorder, reformat and round. People keep these texts under version control, and
compare them: a change of one word has to be a change of one word.
"""

from collections.abc import Iterator
from json import JSONDecoder
from typing import Any, NamedTuple

_WHITE_SPACE = " \t\n\r"
_DECODER = JSONDecoder()


class _Span(NamedTuple):
    """A value, and where in the text it begins and ends."""

    value: Any
    start: int
    end: int


def with_ipam_type(text: str, old: str, new: str) -> str:
    """The text, a valid configuration, with `new` for `old` as the type of its IPAM object, or of each in its list."""
    parts: list[str] = []
    copied = 0
    for span in _types(text, _skip(text, 0)):
        if span.value == old:
            parts += text[copied : span.start], f'"{new}"'
            copied = span.end
    return "".join((*parts, text[copied:]))


def _types(text: str, start: int) -> Iterator[_Span]:
    """The types of IPAM objects in the plugin, or list of plugins, that starts here. Keys are read as Go reads them."""
    for key, member in _members(text, start):
        if key == "ipam" and isinstance(member.value, dict):
            yield from (span for name, span in _members(text, member.start) if name == "type")
        elif key == "plugins" and isinstance(member.value, list):
            for plugin in _items(text, member.start):
                if isinstance(plugin.value, dict):
                    yield from _types(text, plugin.start)


def _members(text: str, start: int) -> Iterator[tuple[str, _Span]]:
    """The keys, in lower case, and values of the object that starts here."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        key = _value(text, at)
        member = _value(text, _skip(text, _skip(text, key.end) + 1))
        yield key.value.lower(), member
        at = _next(text, member.end)


def _items(text: str, start: int) -> Iterator[_Span]:
    """The items of the list that starts here."""
    at = _skip(text, start + 1)
    while text[at] != "]":
        item = _value(text, at)
        yield item
        at = _next(text, item.end)


def _value(text: str, start: int) -> _Span:
    value, end = _DECODER.raw_decode(text, start)
    return _Span(value, start, end)


def _next(text: str, end: int) -> int:
    """Where the next member or item begins after one that ended, or where the closing bracket is."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while text[at] in _WHITE_SPACE:
        at += 1
    return at
