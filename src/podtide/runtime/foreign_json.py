"""JSON that others wrote: read by one function, which returns a value or raises one kind of error.

A tenant can put any text into an annotation. A decoder meets it with half a dozen kinds of exceptions, of which those
for what is nested too deeply, or has too many digits, are easily forgotten, and such a text then ends whatever loop
reads it. And what can just be decoded can be too deep for the function that walks it next, so depth has a limit of its
own, far below Python's.
"""

from typing import Any, TypeVar, overload

import msgspec

from podtide.core.errors import InvalidInput

T = TypeVar("T")

DEEPEST = 100
"""Levels of nesting: more than any configuration has, and few enough to be walked by functions that call themselves."""

_NESTING = (dict, list)

NOT_JSON = (msgspec.MsgspecError, ValueError, RecursionError)
"""All that decoding can raise, whatever the text: ValueError is also for what is not Unicode, or has too many digits."""


class UnreadableJson(InvalidInput):
    """Text that is not JSON, or not of the expected shape. The message says what is wrong, in one line."""


@overload
def decode_json(text: bytes | str) -> Any: ...


@overload
def decode_json(text: bytes | str, kind: type[T]) -> T: ...


def decode_json(text: bytes | str, kind: Any = Any) -> Any:
    """The value in the text; UnreadableJson for everything else."""
    try:
        value = msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise UnreadableJson(_too_deep()) from None
    except NOT_JSON as error:
        raise UnreadableJson(" ".join(str(error).split())) from None
    # Every ADD decodes a configuration: most have too few brackets to be that deep, so they need not be walked.
    if _brackets(text) > DEEPEST and is_deeper(value, DEEPEST):
        raise UnreadableJson(_too_deep())
    return value


def _brackets(text: bytes | str) -> int:
    """How many objects and lists begin in the text at most: as deep it can be, and no deeper."""
    if isinstance(text, str):
        return text.count("{") + text.count("[")
    return text.count(b"{") + text.count(b"[")


def is_deeper(value: object, levels: int) -> bool:
    """Whether objects and lists are nested in each other in more levels than that."""
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(levels):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, _NESTING)
        ]
        if not level:
            return False
    return bool(level)


def _too_deep() -> str:
    return f"it is nested too deeply: {DEEPEST} levels are read, and no more"
