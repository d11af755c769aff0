"""Fields that a kind does not have: kubectl asks the server to refuse them, because they are mostly misspelt.

Only of podtide's own kinds, and Multus's, is every field known. Of pods and nodes the structs name a dozen.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from podtide.cluster.served.kinds import CUSTOM_KINDS
from podtide.cluster.served.openapi import schema_of
from podtide.cluster.served.refusals import BadRequest
from podtide.resources.base import Resource


def refuse_unknown_fields(kind: type[Resource], document: dict[str, Any]) -> None:
    """Refuse a document with fields that its kind does not have, in the words of the API server."""
    if kind not in CUSTOM_KINDS:
        return
    if unknown := list(_unknown(document, _schema(kind), "")):
        words = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise BadRequest(f"{kind.api.kind} cannot be taken: strict decoding error: {words}")


_schema = cache(schema_of)


def _unknown(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _unknown(item, schema["items"], f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    properties: dict[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name, inner in value.items():
        below = f"{path}.{name}" if path else name
        if name in properties:
            yield from _unknown(inner, properties[name], below)
        elif others is not None:
            yield from _unknown(inner, others, below)
        elif properties:
            yield below
