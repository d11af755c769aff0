"""What the API server's refusals mean, in the port's words.

A refusal is a Status document: the body of an answer, or an ERROR event in the midst of a watch. Something in front of
the API server (a load balancer, a login page) may answer too, with anything at all: that says nothing about the cluster,
and above all a 404 of that kind does not mean that an object is gone.
"""

from msgspec import Struct

from podtide.cluster.port import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.runtime.foreign_json import UnreadableJson, decode_json


class Unauthorized(Forbidden):
    """401: the server does not accept the credential. Another credential may help; another role would not."""


_BY_CODE: dict[int, type[ClusterError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}
_OF_ANYBODY: dict[int, type[ClusterError]] = {401: Unauthorized, 403: Forbidden}
"""What a code means, whichever server or proxy it comes from."""
_NOT_YET_READY = "not yet ready to handle request"
"""What admission says with 403 while its caches fill: for some seconds after an API server was started, and longer under load."""
_TOO_MANY_REQUESTS = 429
_SERVICE_UNAVAILABLE = 503
_REDIRECTS = range(300, 400)
_FORBIDDEN = 403
_NOT_FOUND = 404
_NO_SUCH_PATH = b"404 page not found"
"""What the API server says of a kind it does not know."""
_OF_MULTUS = f"/apis/{NetworkAttachmentDefinition.api.group}/"
_LONGEST_MESSAGE = 1000
_LONGEST_WAIT_SECONDS = 300.0
"""However long we are told to stay away. A load balancer's page may name a day, or by mistake a thousand; a node must
not go without addresses long after the server is back, and a request every five minutes costs a server little."""


class StatusCause(Struct, frozen=True, kw_only=True):
    """One cause in the details of a Status."""

    field: str = ""


class StatusDetails(Struct, frozen=True, kw_only=True, rename="camel"):
    """The machine-readable details of a Status."""

    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class Status(Struct, frozen=True, kw_only=True):
    """A Kubernetes Status, as the body of a refusal."""

    kind: str
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


def refusal(doing: str, path: str, code: int, body: bytes, retry_after: str | None) -> ClusterError:
    """The error that an answer to a request of this path stands for."""
    status = read_status(body)
    if status is not None:
        return status_error(doing, status, code, retry_after)
    if code == _NOT_FOUND and body.strip() == _NO_SUCH_PATH:
        return NotFound(f"cannot {doing}: the server knows no such kind: {_how_to_define(path)}")
    if code == _TOO_MANY_REQUESTS or (code == _SERVICE_UNAVAILABLE and retry_after):
        return _throttled(doing, f"the answer was {code}", None, retry_after)
    what = "a redirection" if code in _REDIRECTS else "not from an API server"
    error = _OF_ANYBODY.get(code, Unavailable)
    return error(
        f"cannot {doing}: the answer was {code}, and {what}: check the proxy or load balancer in front of the server"
    )


def _how_to_define(path: str) -> str:
    """How to make the server know the kind at this path: Multus' own is not among podtide's."""
    if path.startswith(_OF_MULTUS):
        return (
            "install Multus, whose kind it is, or its CRD alone "
            "(`podtide crds --with-network-attachments | kubectl apply -f -`), or ask another server"
        )
    return "install the CRDs (`podtide crds | kubectl apply -f -`), or ask another server"


def status_error(
    doing: str, status: Status, code: int | None = None, retry_after: str | None = None
) -> ClusterError:
    """The error that a Status stands for; by its own code where it comes without an answer of its own."""
    code = code or status.code
    message = " ".join(status.message.split())[:_LONGEST_MESSAGE] or status.reason or f"the answer was {code}"
    if code == _TOO_MANY_REQUESTS or (code == _SERVICE_UNAVAILABLE and retry_after):
        return _throttled(doing, message, status.details, retry_after)
    if status.reason == "AlreadyExists":
        return AlreadyExists(f"cannot {doing}: {message}")
    if status.reason == "Expired":
        return Gone(f"cannot {doing}: {message}")
    if status.details and any(cause.field == "metadata.uid" for cause in status.details.causes or ()):
        # An apply or patch that is meant for another object than the one there: to the API server an edit of its uid.
        return Conflict(f"cannot {doing}: {message}")
    if code == _FORBIDDEN and message.endswith(_NOT_YET_READY):
        return Unavailable(f"cannot {doing}: {message}")
    return _BY_CODE.get(code, Unavailable)(f"cannot {doing}: {message}")


def read_status(body: bytes) -> Status | None:
    """The Status in a body, or None when there is none."""
    try:
        status = decode_json(body, Status)
    except UnreadableJson:
        return None
    return status if status.kind == "Status" else None


def _throttled(doing: str, message: str, details: StatusDetails | None, retry_after: str | None) -> Throttled:
    seconds = details.retry_after_seconds if details else None
    if retry_after and retry_after.isdecimal():
        seconds = float(retry_after)
    error = Throttled(f"cannot {doing}: {message}")
    return error if seconds is None else Throttled(str(error), min(seconds, _LONGEST_WAIT_SECONDS))
