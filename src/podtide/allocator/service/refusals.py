"""Errors as answers: a status, and a small document with the error's name and its line for people.

An unexpected error is answered too, without details: these are in the log.
"""

from http import HTTPStatus
from typing import Any, TypeAlias

from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec
from litestar.types import ExceptionHandlersMap

from podtide.allocator.errors import AllocatorUnavailable, NotAllowed
from podtide.allocator.limits import NAME_RULE
from podtide.allocator.wire import LARGEST_BODY_BYTES, STATUSES, RefusalBody, kind_of
from podtide.core.errors import InvalidInput, PodtideError
from podtide.runtime.logging import Logger

OUTCOME = "outcome"
"""Under which the request's state holds the name of the error it was answered with."""
REQUEST_ID = "request_id"
"""Under which it holds the request's id."""
RETRY_AFTER_SECONDS = 1
_LONGEST_QUOTE = 200
_ALWAYS_POSSIBLE = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.SERVICE_UNAVAILABLE)
_BODY = "data"
_NO_BODY = "'data'"
"""How the framework says that there is none."""
_NOT_A_NAME = "Expected `str` matching regex"
"""Names are the only text with a pattern."""

AnyRequest: TypeAlias = Request[Any, Any, Any]
Answer: TypeAlias = Response[RefusalBody]


class Unauthenticated(NotAllowed):
    """No token, or an unknown one."""


def documented(*statuses: HTTPStatus) -> dict[int, ResponseSpec]:
    """The refusals of a path for its OpenAPI: these, and those that every path has."""
    return {
        int(status): ResponseSpec(RefusalBody, description=status.phrase, generate_examples=False)
        for status in (*_ALWAYS_POSSIBLE, *statuses)
    }


REFUSALS_OF_A_CHANGE = documented(
    HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
)
"""Of most paths that change something by what a body states."""


def error_handlers(log: Logger) -> ExceptionHandlersMap:
    """The service's answers to exceptions."""

    def foreseen(request: AnyRequest, error: PodtideError) -> Answer:
        return _refuse(request, error) if kind_of(error) else unforeseen(request, error)

    def misread(request: AnyRequest, error: HTTPException) -> Answer:
        return (
            _misread(request, error)
            if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
            else unforeseen(request, error)
        )

    def too_deep(request: AnyRequest, _error: RecursionError) -> Answer:
        # Nothing here calls itself without end: it is a body that can be nested without end.
        words = f"{_asked(request)} cannot be read: its body is nested too deeply"
        return _answer(request, HTTPStatus.BAD_REQUEST, InvalidInput, words)

    def unforeseen(request: AnyRequest, error: Exception) -> Answer:
        log.error("a request failed", request_id=request.scope["state"].get(REQUEST_ID), exc_info=error)
        words = f"{_asked(request)} failed: the allocator's log says why, under this answer's X-Request-ID"
        return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, AllocatorUnavailable, words)

    return {
        PodtideError: foreseen,
        HTTPException: misread,
        RecursionError: too_deep,
        Exception: unforeseen,
    }


def _refuse(request: AnyRequest, error: PodtideError) -> Answer:
    """The answer to an error of the allocator."""
    kind = kind_of(error)
    assert kind is not None
    if isinstance(error, Unauthenticated):
        return _answer(request, HTTPStatus.UNAUTHORIZED, kind, str(error), {"WWW-Authenticate": "Bearer"})
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if kind is AllocatorUnavailable else {}
    return _answer(request, STATUSES[kind], kind, str(error), headers)


def _misread(request: AnyRequest, error: HTTPException) -> Answer:
    """The answer to an error of the framework: an unknown path or method, or a request that cannot be parsed."""
    asked = _asked(request)
    status = HTTPStatus(error.status_code)
    match status:
        case HTTPStatus.NOT_FOUND:
            words = f"{asked} is refused: there is no such path; see /openapi.json for the paths there are"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            words = f"{asked} is refused: the path has no such method; see /openapi.json for its methods"
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            words = f"the body of {asked} is larger than {LARGEST_BODY_BYTES} bytes: send less at a time"
        case _:
            words = f"{asked} cannot be read: {_reasons(error)}"
    return _answer(request, status, InvalidInput, words, error.headers)


def _asked(request: AnyRequest) -> str:
    """The request's path as received, on one line and shortened."""
    path: bytes = request.scope["raw_path"]
    return f"{request.method} {path[:_LONGEST_QUOTE].decode(errors='replace')}"


def _reasons(error: HTTPException) -> str:
    """What was wrong, field by field."""
    if not isinstance(error.extra, list):
        return error.detail
    return "; ".join(_reason(reason["message"], reason.get("key", _BODY)) for reason in error.extra)


def _reason(message: str, field: str) -> str:
    if field == _BODY:
        return "it needs a body of JSON" if message == _NO_BODY else f"the body: {message}"
    return f"{field} {NAME_RULE}" if message.startswith(_NOT_A_NAME) else f"{field}: {message}"


def _answer(
    request: AnyRequest,
    status: HTTPStatus,
    kind: type[PodtideError],
    words: str,
    headers: dict[str, str] | None = None,
) -> Answer:
    request.scope["state"][OUTCOME] = kind.__name__
    return Response(
        RefusalBody(kind.__name__, words), status_code=status, headers=headers, media_type="application/json"
    )
