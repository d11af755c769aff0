"""Refusals that HTTP knows and the Cluster port does not: what is wrong is the request, not what it is about."""

from http import HTTPStatus
from typing import ClassVar

from podtide.core.errors import FixError


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
