"""Requests and answers: TLS, credentials and time-outs.

Nothing is retried, except that a refused credential is renewed once: retries and back-off are the caller's decision (see
`cluster.backoff`).

A peer that vanishes without closing the connection is noticed by the kernel, which probes quiet connections
(`runtime.http_client`). What a probe cannot find, a peer that is there and says nothing, ends an ordinary request by its
time-out and a watch by silence (see `ApiServerTimeouts`).
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlencode, urlsplit

from msgspec import Struct

from podtide import __version__
from podtide.cluster.kubernetes.access import Access, InvalidAccess, Secret
from podtide.cluster.kubernetes.answers import Unauthorized, refusal
from podtide.cluster.kubernetes.credentials import Credentials, Proof, basic
from podtide.cluster.kubernetes.failures import describe_failure
from podtide.cluster.kubernetes.requests import ApiRequest
from podtide.cluster.kubernetes.tls import TlsContexts
from podtide.cluster.port import Forbidden, Unavailable
from podtide.runtime.http_client import HttpAnswer, HttpClient, HttpDestination

_OK = range(200, 300)
_HEADERS = {
    "Accept": "application/json",
    # Within a cluster, bandwidth is cheaper than the CPU that packing costs on both sides.
    "Accept-Encoding": "identity",
    "User-Agent": f"podtide/{__version__}",
}


class ApiServerTimeouts(Struct, frozen=True, kw_only=True):
    """Time limits of requests and watches."""

    connect_seconds: float = 5.0
    answer_seconds: float = 30.0
    """For an ordinary request, and for a watch to begin."""
    silence_seconds: float = 75.0
    """For a watch to say anything: an API server sends a bookmark about every minute."""
    watch_seconds: int = 300
    """For the server to end a watch, at least; at most twice that."""


class Silence(Exception):
    """A watch said nothing for `ApiServerTimeouts.silence_seconds`."""


class ApiServerConnection:
    """Authenticated HTTP to one API server."""

    def __init__(self, access: Access, credentials: Credentials, timeouts: ApiServerTimeouts) -> None:
        self._access = access
        self._server = access.endpoint.server.rstrip("/")
        self._credentials = credentials
        self._timeouts = timeouts
        self._tls = TlsContexts(access.endpoint)
        self._client: HttpClient | None = None

    async def ask(self, request: ApiRequest) -> bytes:
        """The whole answer to a request."""
        with self._in_words(request):
            return await (await self._answer(request, is_whole=True)).read()

    async def follow(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
        """The pieces of an answer that does not end, as they arrive. Raises Silence when none do."""
        with self._in_words(request):
            answer = await self._answer(request, is_whole=False)
            try:
                async for piece in answer.pieces(self._timeouts.silence_seconds):
                    yield piece
            except TimeoutError as error:
                raise Silence from error
            finally:
                answer.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def _answer(self, request: ApiRequest, *, is_whole: bool) -> HttpAnswer:
        """An answer that is not a refusal: all of it, or its head."""
        proof = await self._credentials.prove()
        try:
            return await self._attempt(request, proof, is_whole=is_whole)
        except Unauthorized:
            other = await self._credentials.prove(refused=proof)
            if other == proof:
                raise
            return await self._attempt(request, other, is_whole=is_whole)

    async def _attempt(self, request: ApiRequest, proof: Proof, *, is_whole: bool) -> HttpAnswer:
        async with asyncio.timeout(self._timeouts.answer_seconds):
            answer = await self._send(request, proof)
            if answer.status in _OK and not is_whole:
                return answer
            body = await answer.read()
        if answer.status in _OK:
            return answer
        raise refusal(request.doing, request.path, answer.status, body, answer.headers.get("retry-after"))

    async def _send(self, request: ApiRequest, proof: Proof) -> HttpAnswer:
        headers = dict(_HEADERS)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if proof.authorization:
            headers["Authorization"] = proof.authorization.reveal()
        query = f"?{urlencode(request.query)}" if request.query else ""
        if self._client is None:
            self._client = HttpClient(self._there(), connect_seconds=self._timeouts.connect_seconds)
        return await self._client.send(
            request.method,
            request.path + query,
            headers=headers,
            body=request.body,
            tls=self._tls.current(proof.key_pair) if self._client.is_tls else None,
            server_name=self._access.endpoint.server_name,
        )

    def _there(self) -> HttpDestination:
        """Where the server is, with the password for the proxy as its header has it."""
        proxy = self._access.endpoint.proxy
        if proxy is None:
            return HttpDestination(url=self._server)
        url = urlsplit(proxy.reveal())
        proof = basic(unquote(url.username), Secret(unquote(url.password or ""))) if url.username else None
        return HttpDestination(
            url=self._server, proxy=url.geturl(), proxy_authorization=proof.reveal() if proof else ""
        )

    @contextmanager
    def _in_words(self, request: ApiRequest) -> Iterator[None]:
        """A context that raises failures of the connection as the port's errors."""
        try:
            yield
        except Unauthorized as error:
            raise Unauthorized(
                f"{error}: {self._server} does not accept the credentials of {self._access.found_in}; renew the token or "
                "certificate there, or name others by --kubeconfig or --context"
            ) from error
        except InvalidAccess as error:
            raise Forbidden(f"cannot {request.doing}: {error}") from error
        except OSError as error:  # TimeoutError is an OSError
            what = describe_failure(error, self._server, self._access.found_in)
            raise Unavailable(f"cannot {request.doing}: {what}") from error
        except ValueError:
            # A host, port or header that the libraries below refuse to write. What they quote may be a secret.
            raise Forbidden(
                f"cannot {request.doing}: no such request can be sent: correct server, proxy and user of "
                f"{self._access.found_in}"
            ) from None
