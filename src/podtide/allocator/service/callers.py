"""Who is asking, and the allocator as they may see it.

A caller is authenticated before the body of the request is read: a stranger cannot make the service read a megabyte.
"""

from typing import TypeAlias

from litestar.di import NamedDependency
from litestar.params import SkipValidation
from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

from podtide.allocator.port import Allocator
from podtide.allocator.service.authority import CallerAllocator
from podtide.allocator.service.refusals import AnyRequest, Unauthenticated
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.service.utilization import UtilizationCache
from podtide.runtime.listening import host_of, is_loopback
from podtide.runtime.logging import Logger

Asked: TypeAlias = NamedDependency[SkipValidation[Allocator]]
"""The allocator as the caller may see it."""
Log: TypeAlias = NamedDependency[SkipValidation[Logger]]
Cache: TypeAlias = NamedDependency[SkipValidation[UtilizationCache]]

CALLER = "caller"
"""The key of the request's state that holds the name of the caller, by its token."""
_BEARER = "bearer"
_LONGEST_QUOTE = 100


def recognise(allocator: Allocator, tokens: Tokens | None) -> Middleware:
    """A middleware that gives each authenticated caller the allocator it may use; without tokens, every local caller.

    A guard would do the same, and Litestar copies the route for each call of one.
    """

    def with_caller(app: ASGIApp) -> ASGIApp:
        async def authenticate(scope: Scope, receive: Receive, send: Send) -> None:
            headers = dict(list(scope["headers"])[::-1])  # of several, the first counts
            if tokens is None:
                _check_host(headers.get(b"host", b"").decode("latin-1"))
                scope["auth"] = allocator
            else:
                holder = tokens.holder(_token(headers.get(b"authorization", b"").decode("latin-1")))
                if holder is None:
                    raise Unauthenticated(
                        "the token is not known here: have it added to the allocator's tokens file"
                    )
                scope["state"][CALLER] = str(holder)
                scope["auth"] = CallerAllocator(allocator, holder.cluster) if holder.cluster else allocator
            await app(scope, receive, send)

        return authenticate

    return with_caller


def asked_allocator(request: AnyRequest) -> Allocator:
    """The allocator that the guard chose for this caller."""
    allocator: Allocator = request.auth
    return allocator


def _token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != _BEARER or not token:
        raise Unauthenticated("no token was shown: send it as `Authorization: Bearer TOKEN`")
    return token.strip()


def _check_host(host: str) -> None:
    if not is_loopback(host_of(host)):
        raise Unauthenticated(
            f"the request is meant for {host[:_LONGEST_QUOTE]!r}, and without tokens only this machine's own are answered: "
            "call it by 127.0.0.1, or give the allocator a tokens file"
        )
