"""Compare and swap of parts of an object: as the JSON patch (RFC 6902) that an API server takes, and on a document.

The API server carries a patch out on the object as it is at that moment, and again when another write was quicker. So
its `test` operations are the precondition, and writers of different parts do not disturb each other. A `test` for null
holds where there is nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from podtide.cluster.port import Conflict, Invalid, PartSwap


def json_patch(parts: Sequence[PartSwap]) -> list[dict[str, Any]]:
    """All comparisons, then all changes."""
    comparisons = [
        {"op": "test", "path": _pointer(part), "value": part.before}
        for part in parts
        if part.before is not UNSET
    ]
    return [*comparisons, *(_change(part) for part in parts if part.after is not UNSET)]


def swapped(document: Mapping[str, Any], parts: Sequence[PartSwap]) -> dict[str, Any]:
    """The document after all swaps; Conflict when a part is not as it must be. It shares the rest with `document`."""
    for part in parts:
        if part.before is not UNSET and _find(document, part.path) != part.before:
            raise Conflict(f"{_pointer(part)} is not as it was: read the object again")
    result = dict(document)
    for part in parts:
        if part.after is not UNSET:
            _put(result, part)
    return result


def _pointer(part: PartSwap) -> str:
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in part.path)


def _change(part: PartSwap) -> dict[str, Any]:
    if part.after is None:
        return {"op": "remove", "path": _pointer(part)}
    return {"op": "add", "path": _pointer(part), "value": part.after}


def _find(document: Any, path: Sequence[str]) -> Any:
    for step in path:
        document = document.get(step) if isinstance(document, Mapping) else None
    return document


def _put(result: dict[str, Any], part: PartSwap) -> None:
    *way, last = part.path
    for step in way:
        if not isinstance(result.get(step), Mapping):
            raise Invalid(f"{_pointer(part)} has no place in the object: read it again")
        result[step] = dict(result[step])
        result = result[step]
    if part.after is not None:
        result[last] = part.after
    elif result.pop(last, None) is None:
        raise Conflict(f"{_pointer(part)} is gone already: read the object again")
