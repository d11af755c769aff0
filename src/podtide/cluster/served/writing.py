"""POST, PUT and PATCH.

A body is read to its end first, and then everything happens at once: between reading an object and writing what a patch
makes of it, no other request is served.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from podtide.cluster.embedded.records import Document, ObjectVersion
from podtide.cluster.merge_patch import merge_patched
from podtide.cluster.served.admission import admit_object, refuse_dry_run
from podtide.cluster.served.answers import object_answer
from podtide.cluster.served.bodies import parsed, placed, read_object, whole_object
from podtide.cluster.served.json_patch import json_patched
from podtide.cluster.served.kinds import CUSTOM_KINDS
from podtide.cluster.served.statuses import BadRequest, UnsupportedMediaType
from podtide.cluster.served.strategic_merge_patch import strategic_merge_patched
from podtide.cluster.served.target import ApiTarget, flag
from podtide.runtime.http_port import read_body

_APPLY = "application/apply-patch+yaml"
_PATCHES: dict[str, Callable[[Document, Any], Any]] = {
    "application/merge-patch+json": merge_patched,
    "application/json-patch+json": json_patched,
    "application/strategic-merge-patch+json": strategic_merge_patched,
}


async def create(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve POST: create an object."""
    refuse_dry_run(request.query.get("dryRun"))
    document = await read_object(target, request)
    admit_object(target, request, document)
    record = target.server.create(target.kind, document, manager=_manager(request))
    return object_answer(record, HTTPStatus.CREATED)


async def replace(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve PUT of an object, or of its status."""
    refuse_dry_run(request.query.get("dryRun"))
    document = await read_object(target, request)
    code = _code(target)
    return object_answer(_replace(target, request, document), code)


async def patch(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve PATCH of an object, or of its status."""
    refuse_dry_run(request.query.get("dryRun"))
    body = await read_body(request)
    if request.content_type == _APPLY and not target.is_status:
        return _apply(target, request, body)
    patched = _PATCHES.get(request.content_type)
    if patched is None or (patched is strategic_merge_patched and target.kind in CUSTOM_KINDS):
        raise UnsupportedMediaType(
            f"{target.kind.api.kind}{' status' if target.is_status else ''} cannot be patched by "
            f"{request.content_type or 'what has no content type'}: send application/merge-patch+json "
            "(with kubectl: --type merge)"
        )
    record = target.server.get(target.kind, target.name, target.namespace)
    document = whole_object(target, patched(record.document(), parsed(body)))
    return object_answer(_replace(target, request, document))


def _replace(target: ApiTarget, request: web.Request, document: Document) -> ObjectVersion:
    admit_object(target, request, document)
    put = target.server.replace_status if target.is_status else target.server.replace
    return put(target.kind, document, manager=_manager(request))


def _apply(target: ApiTarget, request: web.Request, body: bytes) -> web.Response:
    document = placed(target, parsed(body))
    if not request.query.get("fieldManager"):
        raise BadRequest("an apply must say by fieldManager who applies")
    if "managedFields" in document["metadata"]:
        raise BadRequest("an apply says what its manager wants, not who owns what: leave out managedFields")
    admit_object(target, request, document)
    code = _code(target)
    record = target.server.apply(
        target.kind, document, manager=_manager(request), force=flag(request, "force")
    )
    return object_answer(record, code)


def _code(target: ApiTarget) -> HTTPStatus:
    """The HTTP status of a write that may create the object."""
    is_there = target.server.has(target.kind, target.name, target.namespace)
    return HTTPStatus.OK if is_there else HTTPStatus.CREATED


def _manager(request: web.Request) -> str:
    """The field manager: the one stated, else the client program's name, as for an API server."""
    program = request.headers.get("User-Agent", "").partition("/")[0]
    return request.query.get("fieldManager") or program or "unknown"
