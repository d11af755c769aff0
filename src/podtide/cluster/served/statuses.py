"""What went wrong, as the Status object that Kubernetes' clients expect, and the HTTP code that goes with it.

Some of it HTTP knows and the Cluster port does not: there what is wrong is the request, not what it is about.
"""

from http import HTTPStatus
from typing import Any, ClassVar

from podtide.cluster.port import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NotFound
from podtide.core.errors import FixError, InvalidInput, PodtideError
from podtide.resources.base import Api


class RefusedRequest(FixError):
    """A request that is refused; `reason` is the reason in the Kubernetes Status."""

    code: ClassVar[HTTPStatus]
    reason: ClassVar[str]


class BadRequest(RefusedRequest):
    """A request that cannot be parsed, or contradicts itself."""

    code = HTTPStatus.BAD_REQUEST
    reason = "BadRequest"


class ForbiddenHost(RefusedRequest):
    """The request was meant for another host: a page in a browser may have been tricked into sending it here."""

    code = HTTPStatus.FORBIDDEN
    reason = "Forbidden"


class NotAcceptable(RefusedRequest):
    """The client accepts none of the supported forms."""

    code = HTTPStatus.NOT_ACCEPTABLE
    reason = "NotAcceptable"


class UnsupportedMediaType(RefusedRequest):
    """A body of an unsupported media type."""

    code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    reason = "UnsupportedMediaType"


Status = dict[str, Any]

_MEANINGS: tuple[tuple[type[PodtideError], HTTPStatus, str], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND, "NotFound"),
    (AlreadyExists, HTTPStatus.CONFLICT, "AlreadyExists"),
    (Conflict, HTTPStatus.CONFLICT, "Conflict"),
    (Gone, HTTPStatus.GONE, "Expired"),
    (Forbidden, HTTPStatus.FORBIDDEN, "Forbidden"),
    (PodtideError, HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable"),
)


def failure(code: int, reason: str, message: str, details: dict[str, str] | None = None) -> Status:
    """The Status of a refusal."""
    return _status("Failure", details) | {"message": message, "reason": reason, "code": code}


def success(details: dict[str, str]) -> Status:
    """The Status of a deletion that left no object."""
    return _status("Success", details)


def details_of(api: Api, name: str, uid: str = "") -> dict[str, str]:
    """Which object a status is about; Kubernetes calls the plural its kind here."""
    details = {"name": name, "group": api.group, "kind": api.plural, "uid": uid}
    return {field: value for field, value in details.items() if value}


def status_of(error: PodtideError, details: dict[str, str], *, is_read: bool) -> Status:
    """The Status that an error stands for.

    What is invalid in a read is its query, in a write the object. An invalid object goes without details: kubectl
    would show them in the place of the message.
    """
    if isinstance(error, RefusedRequest):
        return failure(error.code, error.reason, str(error), details)
    if isinstance(error, (Invalid, InvalidInput)):
        if is_read:
            return failure(HTTPStatus.BAD_REQUEST, "BadRequest", str(error), details)
        return failure(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", str(error))
    _, code, reason = next(meaning for meaning in _MEANINGS if isinstance(error, meaning[0]))
    return failure(code, reason, str(error), details)


def _status(outcome: str, details: dict[str, str] | None) -> Status:
    status: Status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome}
    return status | {"details": details} if details else status
