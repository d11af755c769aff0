"""Refusals that HTTP knows and the Cluster port does not: what is wrong is the request, not what it is about."""

from http import HTTPStatus
from typing import ClassVar

from podtide.core.errors import FixError


class RefusedRequest(FixError):
    """A request that is not carried out; `reason` is the word Kubernetes has for it."""

    code: ClassVar[HTTPStatus]
    reason: ClassVar[str]


class BadRequest(RefusedRequest):
    """What was sent cannot be read, or contradicts itself."""

    code = HTTPStatus.BAD_REQUEST
    reason = "BadRequest"


class ForbiddenHost(RefusedRequest):
    """The request was meant for another host: a page in a browser may have been tricked into sending it here."""

    code = HTTPStatus.FORBIDDEN
    reason = "Forbidden"


class NotAcceptable(RefusedRequest):
    """None of the forms the client takes is one of ours."""

    code = HTTPStatus.NOT_ACCEPTABLE
    reason = "NotAcceptable"


class UnsupportedMediaType(RefusedRequest):
    """A body in a form that is not read here."""

    code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    reason = "UnsupportedMediaType"
