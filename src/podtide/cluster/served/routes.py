"""Which path and method leads where, kind by kind. A request to an unknown path is answered by a Status too."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
from aiohttp import web
from aiohttp.log import server_logger
from msgspec.structs import replace as with_fields

from podtide.cluster.embedded import ApiServer
from podtide.cluster.served import deleting, reading, writing
from podtide.cluster.served.answers import JSON, json_answer
from podtide.cluster.served.discovery import discovery, root_of, version
from podtide.cluster.served.openapi import openapi_documents
from podtide.cluster.served.statuses import ForbiddenHost, details_of, failure, status_of
from podtide.cluster.served.target import ApiTarget
from podtide.core.errors import PodtideError
from podtide.runtime.listening import host_of, is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TargetHandler = Callable[[ApiTarget, web.Request], Awaitable[web.StreamResponse]]

_LARGEST_BODY_BYTES = 3 << 20
_HEALTH = ("/healthz", "/livez", "/readyz")
_REASONS = {
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
}


def make_application(server: ApiServer) -> web.Application:
    """The application with all paths of an API server for the kinds of this one."""
    kinds = [table.kind for table in server.store.tables.values()]
    application = web.Application(
        middlewares=[_answer_errors, _check_host], client_max_size=_LARGEST_BODY_BYTES
    )
    router = application.router
    for path, document in (discovery(kind.api for kind in kinds) | {"/version": version()}).items():
        router.add_route("GET", path, _fixed(msgspec.json.encode(document)))
    for path, body in openapi_documents(kinds).items():
        router.add_route("GET", path, _fixed(body))
    for path in _HEALTH:
        router.add_route("GET", path, _fixed(b"ok", "text/plain"))
    for kind in kinds:
        _add_kind(router, ApiTarget(server=server, kind=kind))
    return application


def _add_kind(router: web.UrlDispatcher, target: ApiTarget) -> None:
    api, root = target.kind.api, root_of(target.kind.api)
    everywhere = f"{root}/{api.plural}"
    collection = f"{root}/namespaces/{{namespace}}/{api.plural}" if api.namespaced else everywhere
    for path in dict.fromkeys((everywhere, collection)):
        router.add_route("GET", path, _about(target, reading.list_or_watch))
    router.add_route("POST", collection, _about(target, writing.create))
    item = f"{collection}/{{name}}"
    router.add_route("GET", item, _about(target, reading.get))
    router.add_route("PUT", item, _about(target, writing.replace))
    router.add_route("PATCH", item, _about(target, writing.patch))
    router.add_route("DELETE", item, _about(target, deleting.delete))
    if api.status_subresource:
        status = with_fields(target, is_status=True)
        router.add_route("GET", f"{item}/status", _about(status, reading.get))
        router.add_route("PUT", f"{item}/status", _about(status, writing.replace))
        router.add_route("PATCH", f"{item}/status", _about(status, writing.patch))


def _about(of_kind: ApiTarget, handler: TargetHandler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        target = of_kind.named_by(request)
        try:
            return await handler(target, request)
        except PodtideError as error:
            details = details_of(target.kind.api, target.name)
            status = status_of(error, details, is_read=request.method == "GET")
            return json_answer(status, status["code"])

    return handle


def _fixed(body: bytes, content_type: str = JSON) -> Handler:
    async def handle(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type)

    return handle


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except PodtideError as error:
        status = status_of(error, {}, is_read=True)
    except web.HTTPException as error:
        words = f"{request.method} {request.path}: {error.reason}"
        status = failure(error.status, _REASONS.get(HTTPStatus(error.status), error.reason), words)
    except Exception:  # noqa: BLE001 - whatever it was, the client is told that it failed, and the log how
        server_logger.exception("%s %s went wrong", request.method, request.path)
        words = "the server failed, and its log says how"
        status = failure(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", words)
    return json_answer(status, status["code"])


@web.middleware
async def _check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a Host header that is not this machine's: a web page could make a browser send requests here."""
    if not is_loopback(host_of(request.host)):
        raise ForbiddenHost(f"requests for host {request.host!r} are refused: use 127.0.0.1 or localhost")
    return await handler(request)
