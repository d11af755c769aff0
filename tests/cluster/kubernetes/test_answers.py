import msgspec
import pytest

from cluster.kubernetes.loopback_server import status
from podtide.cluster.kubernetes.answers import Unauthorized, refusal
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

DOING = "replace Pod default/web"
PATH = "/api/v1/namespaces/default/pods/web"


def refused(
    code: int, reason: str = "", message: str = "no", retry_after: str | None = None, **more: object
) -> ClusterError:
    return refusal(DOING, PATH, code, msgspec.json.encode(status(code, reason, message, **more)), retry_after)


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", Invalid),
        (408, "Timeout", Unavailable),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (413, "RequestEntityTooLarge", Invalid),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (504, "Timeout", Unavailable),
    ],
)
def test_every_refusal_is_one_of_the_ports_errors(code: int, reason: str, error: type[ClusterError]) -> None:
    assert type(refused(code, reason)) is error


def test_a_server_that_was_just_started_forbids_for_a_moment_only() -> None:
    """As Kubernetes 1.32 answered after it was killed: no role lacks a right, and the same request is taken seconds later."""
    words = 'pods "web" is forbidden: not yet ready to handle request'
    assert type(refused(403, "Forbidden", words)) is Unavailable
    assert (
        type(refused(403, "Forbidden", 'pods "web" is forbidden: User "agent" cannot update it')) is Forbidden
    )


def test_an_error_says_what_was_asked_of_which_object_and_what_the_server_said_in_one_line() -> None:
    error = refused(409, "Conflict", "the object\nhas been modified;\n  read it again")
    assert str(error) == "cannot replace Pod default/web: the object has been modified; read it again"


def test_a_refusal_without_words_is_named_by_its_reason_or_code() -> None:
    assert str(refused(500, "InternalError", "")) == f"cannot {DOING}: InternalError"
    assert str(refused(500, "", "")) == f"cannot {DOING}: the answer was 500"


def test_a_message_without_end_is_cut() -> None:
    assert len(str(refused(500, message="x" * 100_000))) < 1_100


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", {}, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        (None, {}, 1.0),
        ("Fri, 13 Nov 2026 12:00:00 GMT", {}, 1.0),
    ],
)
def test_who_is_throttled_is_told_when_to_come_back(
    header: str | None, details: dict[str, int], seconds: float
) -> None:
    error = refused(429, "TooManyRequests", retry_after=header, details=details)
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == seconds


def test_a_server_that_is_not_ready_and_says_when_it_will_be_is_obeyed_too() -> None:
    error = refused(503, "ServiceUnavailable", retry_after="5")
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == 5


@pytest.mark.parametrize(
    ("code", "header", "details"),
    [
        (503, "86400000", {}),
        (429, "301", {}),
        (429, None, {"retryAfterSeconds": 86400000}),
        pytest.param(429, "9" * 5000, {}, id="5000 digits"),
    ],
)
def test_nobody_is_sent_away_for_longer_than_five_minutes(
    code: int, header: str | None, details: dict[str, int]
) -> None:
    error = refused(code, "Busy", retry_after=header, details=details)
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == 300


def test_a_write_meant_for_another_uid_is_a_conflict_though_the_server_calls_it_an_invalid_edit() -> None:
    assert isinstance(refused(422, "Invalid", details={"causes": [{"field": "metadata.uid"}]}), Conflict)
    assert isinstance(refused(422, "Invalid", details={"causes": [{"field": "spec.range"}]}), Invalid)


def test_a_kind_the_server_does_not_know_is_not_found_and_says_what_to_install() -> None:
    error = refusal(DOING, PATH, 404, b"404 page not found\n", None)
    assert isinstance(error, NotFound)
    assert "podtide crds" in str(error)


@pytest.mark.parametrize(
    "body", [b"<html>404 Not Found</html>", b"{}", b"[]", b"", b"\xff\xfe", b'{"kind":"Pod"}']
)
def test_a_404_that_is_no_word_of_the_cluster_does_not_mean_that_an_object_is_gone(body: bytes) -> None:
    assert type(refusal("get Node a", "/api/v1/nodes/a", 404, body, None)) is Unavailable


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (302, Unavailable),
        (401, Unauthorized),
        (403, Forbidden),
        (409, Unavailable),
        (429, Throttled),
        (502, Unavailable),
    ],
)
def test_whatever_stands_before_the_server_may_answer_too(code: int, error: type[ClusterError]) -> None:
    assert type(refusal(DOING, PATH, code, b"<html>", None)) is error
