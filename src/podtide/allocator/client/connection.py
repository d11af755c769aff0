"""One request to the service, retried until it is answered or the time is over.

Every call of the port is idempotent, so a request without an answer (connection refused or broken, the database behind
the service is away) is retried with back-off and jitter. An answer is final, also if it is a refusal.
"""

import asyncio
from http import HTTPStatus
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from podtide import __version__
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.wire import LARGEST_BODY_BYTES, RefusalBody, named
from podtide.cluster.backoff import Backoff
from podtide.cluster.kubernetes.access import Endpoint
from podtide.cluster.kubernetes.credentials import Credentials, FileCredentials, FixedCredentials, Proof
from podtide.cluster.kubernetes.failures import describe_failure
from podtide.cluster.kubernetes.tls import TlsContexts
from podtide.core.errors import InvalidInput, PodtideError
from podtide.runtime.clock import Clock
from podtide.runtime.foreign_json import UnreadableJson, decode_json
from podtide.runtime.http_client import HttpClient, HttpDestination

_OK = range(200, 300)
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"podtide/{__version__}",
}


class AllocatorAddress(Struct, frozen=True, kw_only=True):
    """The service's URL, and how client and service authenticate."""

    url: str
    token_file: Path | None = None
    """Read for every request: tokens are rotated."""
    authority: Path | None = None
    """The CA of the service's certificate; None for those that the machine trusts."""

    def __post_init__(self) -> None:
        if not _is_http(self.url):
            raise InvalidInput(
                f"--allocator {self.url!r} is not a valid URL of an allocator: give one such as https://allocator:8080"
            )


def _is_http(text: str) -> bool:
    try:
        url = urlsplit(text)
        is_server = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
        has_more = bool(url.query or url.fragment or url.username is not None)
        return is_server and not has_more and text.isascii() and text.isprintable() and " " not in text
    except ValueError:
        return False


class AllocatorTimeouts(Struct, frozen=True, kw_only=True):
    """Time limits of requests and retries."""

    connect_seconds: float = 3.0
    answer_seconds: float = 10.0
    """For one attempt."""
    deadline_seconds: float = 30.0
    """For all attempts together."""
    retry_seconds: float = inf
    """How long attempts that failed are made again; one that is under way has its time all the same."""
    backoff: Backoff = Backoff(floor_seconds=0.1, cap_seconds=3.0)


class AllocatorHttpRequest(Struct, frozen=True):
    """One request; `doing` says in words what it is for."""

    method: str
    path: str
    doing: str
    query: dict[str, str] = {}
    body: dict[str, Any] | None = None


class _NoAnswer(AllocatorUnavailable):
    """A failed attempt that may be retried, not before the time that the service named."""

    def __init__(self, words: str, *, after_seconds: float = 0.0, cut_short: bool = False) -> None:
        super().__init__(words)
        self.after_seconds = after_seconds
        self.cut_short = cut_short
        """It was given less time than usual: that there was no answer says nothing."""


class AllocatorConnection:
    """Authenticated HTTP to the allocator service, with retries."""

    def __init__(
        self, server: AllocatorAddress, timeouts: AllocatorTimeouts, clock: Clock, randomness: Random
    ) -> None:
        self._server = server
        self._timeouts = timeouts
        self._clock = clock
        self._randomness = randomness
        self._credentials: Credentials = (
            FileCredentials(server.token_file, None) if server.token_file else FixedCredentials(Proof())
        )
        self._tls = TlsContexts(Endpoint(server=server.url, authority=server.authority))
        self._client = HttpClient(
            HttpDestination(url=server.url.rstrip("/")), connect_seconds=timeouts.connect_seconds
        )

    async def ask(self, question: AllocatorHttpRequest) -> bytes:
        """The answer to the request, after as many attempts as its time allows."""
        began = self._clock.monotonic()
        deadline = began + self._timeouts.deadline_seconds
        last_attempt_at = min(deadline, began + self._timeouts.retry_seconds)
        failures, reason = 0, ""
        while True:
            try:
                return await self._attempt(question, deadline - self._clock.monotonic())
            except _NoAnswer as error:
                failures += 1
                reason = reason if error.cut_short and reason else str(error)
                drawn = self._timeouts.backoff.delay_seconds(failures, self._randomness)
                delay = max(drawn, error.after_seconds)
                if self._clock.monotonic() + delay >= last_attempt_at:
                    raise AllocatorUnavailable(f"{reason} (asked {_times(failures)})") from error
            await asyncio.sleep(delay)

    async def close(self) -> None:
        """Close all connections."""
        self._client.close()

    async def _attempt(self, question: AllocatorHttpRequest, seconds_left: float) -> bytes:
        seconds = max(0.001, min(self._timeouts.answer_seconds, seconds_left))
        proof = await self._credentials.prove()
        headers = dict(_HEADERS)
        if proof.authorization:
            headers["Authorization"] = proof.authorization.reveal()
        content: bytes | None = None
        if question.body is not None:
            headers["Content-Type"] = "application/json"
            content = _encoded(question)
        query = f"?{urlencode(question.query)}" if question.query else ""
        tls = self._tls.current(None) if self._client.is_tls else None
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.send(
                    question.method, question.path + query, headers=headers, body=content, tls=tls
                )
                body = await answer.read()
        except OSError as error:  # TimeoutError is one
            what = describe_failure(
                error, self._server.url, str(self._server.authority or "the machine's own list")
            )
            cut_short = isinstance(error, TimeoutError) and seconds < self._timeouts.answer_seconds
            raise _NoAnswer(f"cannot {question.doing}: {what}", cut_short=cut_short) from error
        if answer.status in _OK:
            return body
        raise _refusal(question, answer.status, body, answer.headers.get("retry-after", ""), self._server)


def _encoded(question: AllocatorHttpRequest) -> bytes:
    body = msgspec.json.encode(question.body)
    if len(body) > LARGEST_BODY_BYTES:
        raise InvalidInput(
            f"cannot {question.doing}: the request has {len(body)} bytes, and at most {LARGEST_BODY_BYTES} are allowed: "
            "ask for less at a time"
        )
    return body


def _refusal(
    question: AllocatorHttpRequest, status: int, body: bytes, retry_after: str, server: AllocatorAddress
) -> PodtideError:
    """The port's error, if the answer is the service's; an answer of a proxy in between counts as none."""
    try:
        refusal = decode_json(body, RefusalBody)
    except UnreadableJson:
        refusal = RefusalBody(
            "",
            f"it answered {status} {_phrase(status)}, which is not an answer of an allocator: check the URL",
        )
    words = f"cannot {question.doing}: {refusal.message}"
    if status == HTTPStatus.UNAUTHORIZED:
        words += f" ({server.url} was shown {_shown_token(server)})"
    kind = named(refusal.error)
    if kind is None or kind is AllocatorUnavailable:
        return _NoAnswer(words, after_seconds=float(retry_after) if retry_after.isdecimal() else 0.0)
    return kind(words)


def _shown_token(server: AllocatorAddress) -> str:
    """The option that the token was given by, for messages."""
    if server.token_file is None:
        return "no token: give --token-file FILE"
    return f"the token of --token-file {server.token_file}: correct it there, or name another file"


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else ""


def _times(failures: int) -> str:
    return "once" if failures == 1 else f"{failures} times"
