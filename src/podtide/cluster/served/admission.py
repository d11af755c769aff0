"""What the HTTP server refuses beyond the rules of the embedded cluster."""

from collections.abc import Iterator
from typing import Any

from aiohttp import web

from podtide.cluster.embedded.records import Document
from podtide.cluster.port import Forbidden, Invalid
from podtide.cluster.served.kinds import CUSTOM_KINDS, STANDING_NAMESPACES, CustomResourceDefinition
from podtide.cluster.served.openapi import schema_of
from podtide.cluster.served.statuses import BadRequest
from podtide.cluster.served.tables import find_first
from podtide.cluster.served.target import ApiTarget
from podtide.resources.base import Resource
from podtide.resources.namespace import Namespace

_DEFINABLE = {(kind.api.group, kind.api.plural): kind.api.kind for kind in CUSTOM_KINDS}


def refuse_dry_run(asked: object) -> None:
    """Refuse a dry run, which is not supported: the write would take effect."""
    if asked:
        raise BadRequest("a dry run is not served here: leave out dryRun, or ask a real API server")


def admit_object(target: ApiTarget, request: web.Request, document: Document) -> None:
    """Refuse an object that this cluster cannot serve, or that strict field validation refuses."""
    if target.kind is CustomResourceDefinition:
        _admit_definition(document)
    if request.query.get("fieldValidation") == "Strict":
        refuse_unknown_fields(target.kind, document)


def admit_deletion(kind: type[Resource], name: str) -> None:
    """Refuse to delete the namespaces that every cluster has."""
    if kind is Namespace and name in STANDING_NAMESPACES:
        raise Forbidden(f"namespace {name} cannot be deleted: every cluster has it")


def _admit_definition(document: Document) -> None:
    group, plural = (str(find_first(document, path)) for path in (".spec.group", ".spec.names.plural"))
    if (group, plural) not in _DEFINABLE:
        raise Invalid(
            f"{plural}.{group} cannot be defined here, for kinds are built in ({', '.join(_DEFINABLE.values())}): "
            "use a real API server for others"
        )


def refuse_unknown_fields(kind: type[Resource], document: dict[str, Any]) -> None:
    """Refuse a document with fields that its kind does not have, in the words of the API server.

    kubectl asks for it, because such fields are mostly misspelt. Only of podtide's own kinds, and Multus's, is every
    field known: of pods and nodes the structs name a dozen.
    """
    if kind not in CUSTOM_KINDS:
        return
    if unknown := list(_unknown(document, schema_of(kind), "")):
        words = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise BadRequest(f"{kind.api.kind} cannot be taken: strict decoding error: {words}")


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
