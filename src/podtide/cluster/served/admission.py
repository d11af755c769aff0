"""What is refused here and not by the rules that the embedded cluster keeps for everybody."""

from aiohttp import web

from podtide.cluster.embedded.records import Document
from podtide.cluster.port import Forbidden, Invalid
from podtide.cluster.served.field_validation import refuse_unknown_fields
from podtide.cluster.served.kinds import (
    CUSTOM_KINDS,
    STANDING_NAMESPACES,
    CustomResourceDefinition,
)
from podtide.cluster.served.refusals import BadRequest
from podtide.cluster.served.tables import find_first
from podtide.cluster.served.target import RequestTarget
from podtide.resources.base import Resource
from podtide.resources.namespace import Namespace

_DEFINABLE = {(kind.api.group, kind.api.plural): kind.api.kind for kind in CUSTOM_KINDS}


def refuse_dry_run(asked: object) -> None:
    """Refuse a write that is to change nothing: here it would."""
    if asked:
        raise BadRequest("a dry run is not served here: leave out dryRun, or ask a real API server")


def admit_object(target: RequestTarget, request: web.Request, document: Document) -> None:
    """Refuse a document that this cluster cannot honour, or that the client asks to have refused."""
    if target.kind is CustomResourceDefinition:
        _admit_definition(document)
    if request.query.get("fieldValidation") == "Strict":
        refuse_unknown_fields(target.kind, document)


def admit_deletion(kind: type[Resource], name: str) -> None:
    """Refuse to delete what must stay."""
    if kind is Namespace and name in STANDING_NAMESPACES:
        raise Forbidden(f"namespace {name} cannot be deleted: every cluster has it")


def _admit_definition(document: Document) -> None:
    group, plural = (str(find_first(document, path)) for path in (".spec.group", ".spec.names.plural"))
    if (group, plural) not in _DEFINABLE:
        raise Invalid(
            f"{plural}.{group} cannot be defined here, for kinds are built in ({', '.join(_DEFINABLE.values())}): "
            "use a real API server for others"
        )
