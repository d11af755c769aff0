"""Requests and answers: one aiohttp session, TLS, credentials and time-outs.

Nothing is retried, except that a refused credential is renewed once: retries and back-off are the caller's decision (see
`cluster.backoff`).

A peer that vanishes without closing the connection is noticed by the kernel, which probes quiet connections
(`_keep_alive`). What a probe cannot find, a peer that is there and says nothing, ends an ordinary request by its
time-out and a watch by silence (see `ApiServerTimeouts`).
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
from msgspec import Struct
from yarl import URL

from podtide import __version__
from podtide.cluster.kubernetes.access import Access, InvalidAccess, Secret
from podtide.cluster.kubernetes.answers import Unauthorized, refusal
from podtide.cluster.kubernetes.credentials import Credentials, Proof, basic
from podtide.cluster.kubernetes.failures import describe_failure
from podtide.cluster.kubernetes.requests import ApiRequest
from podtide.cluster.kubernetes.tls import TlsContexts
from podtide.cluster.port import Forbidden, Unavailable

_OK = range(200, 300)
_PROBE_AFTER_SECONDS = 5
_PROBE_EVERY_SECONDS = 3
_PROBES = 3
_POOLED_SECONDS = 30.0
"""Servers and load balancers drop an idle connection after a minute or more. We drop it first."""
_READ_AHEAD_BYTES = 1 << 18


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
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: ApiRequest) -> bytes:
        """The whole answer to a request."""
        timeouts = self._timeouts
        limits = aiohttp.ClientTimeout(total=timeouts.answer_seconds, sock_connect=timeouts.connect_seconds)
        with self._in_words(request):
            async with await self._answer(request, limits) as response:
                return await response.read()

    async def follow(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
        """The pieces of an answer that does not end, as they arrive. Raises Silence when none do."""
        timeouts = self._timeouts
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect_seconds, sock_read=timeouts.silence_seconds
        )
        with self._in_words(request):
            response = await self._answer(request, limits)
            try:
                while piece := await response.content.readany():
                    yield piece
            except aiohttp.SocketTimeoutError as error:
                raise Silence from error
            finally:
                _abandon(response)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _answer(self, request: ApiRequest, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """The beginning of an answer that is not a refusal."""
        proof = await self._credentials.prove()
        try:
            return await self._attempt(request, limits, proof)
        except Unauthorized:
            other = await self._credentials.prove(refused=proof)
            if other == proof:
                raise
            return await self._attempt(request, limits, other)

    async def _attempt(
        self, request: ApiRequest, limits: aiohttp.ClientTimeout, proof: Proof
    ) -> aiohttp.ClientResponse:
        response = await self._send(request, limits, proof)
        if response.status in _OK:
            return response
        async with response:
            body = await response.read()
        wait = response.headers.get("Retry-After")
        raise refusal(request.doing, request.path, response.status, body, wait)

    async def _send(
        self, request: ApiRequest, limits: aiohttp.ClientTimeout, proof: Proof
    ) -> aiohttp.ClientResponse:
        endpoint = self._access.endpoint
        headers = {"Content-Type": request.content_type} if request.body is not None else {}
        if proof.authorization:
            headers["Authorization"] = proof.authorization.reveal()
        more: dict[str, Any] = {}
        if self._server.startswith("https:"):
            more["ssl"] = self._tls.current(proof.key_pair)
            more["server_hostname"] = endpoint.server_name or None
        if endpoint.proxy:
            more |= _through(URL(endpoint.proxy.reveal()))
        query = f"?{urlencode(request.query)}" if request.query else ""
        async with asyncio.timeout(self._timeouts.answer_seconds):
            return await self._open_session().request(
                request.method,
                URL(f"{self._server}{request.path}{query}", encoded=True),
                data=request.body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                **more,
            )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # every watch holds a connection: no number of them may hold up a write
                    socket_factory=_socket,
                    keepalive_timeout=_POOLED_SECONDS,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "Accept": "application/json",
                    # Within a cluster, bandwidth is cheaper than the CPU that packing costs on both sides.
                    "Accept-Encoding": "identity",
                    "User-Agent": f"podtide/{__version__}",
                },
                read_bufsize=_READ_AHEAD_BYTES,
            )
            # aiohttp would send a GET, PUT or DELETE again when the connection breaks, whether or not it had effect.
            self._session._retry_connection = False  # noqa: SLF001 - there is no other way to say so
        return self._session

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
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            what = describe_failure(error, self._server, self._access.found_in)
            raise Unavailable(f"cannot {request.doing}: {what}") from error
        except ValueError:
            # A host, port or header that the libraries below refuse to write. What they quote may be a secret.
            raise Forbidden(
                f"cannot {request.doing}: no such request can be sent: correct server, proxy and user of "
                f"{self._access.found_in}"
            ) from None


def _through(proxy: URL) -> dict[str, Any]:
    """The proxy for aiohttp, with the password apart from the URL, which errors quote."""
    if not proxy.user:
        return {"proxy": proxy}
    who = basic(proxy.user, Secret(proxy.password or ""))
    return {"proxy": proxy.with_user(None), "proxy_headers": {"Proxy-Authorization": who.reveal()}}


def _abandon(response: aiohttp.ClientResponse) -> None:
    """Drop the connection without a goodbye: one to a dead peer would block."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    _keep_alive(connection)
    return connection


def _keep_alive(connection: socket.socket) -> None:
    """Have the kernel probe a quiet peer, and give up on one that does not acknowledge."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere the machine's defaults must do
        dead_after_seconds = _PROBE_AFTER_SECONDS + _PROBES * _PROBE_EVERY_SECONDS
        for option, value in (
            (socket.TCP_KEEPIDLE, _PROBE_AFTER_SECONDS),
            (socket.TCP_KEEPINTVL, _PROBE_EVERY_SECONDS),
            (socket.TCP_KEEPCNT, _PROBES),
            (socket.TCP_USER_TIMEOUT, dead_after_seconds * 1000),
        ):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
