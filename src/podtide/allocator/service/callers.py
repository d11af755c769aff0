"""Who is asking, and the allocator as they may see it.

A caller is authenticated before the body of the request is read: a stranger cannot make the service read a megabyte.
"""

from typing import Any, TypeAlias

from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import SkipValidation
from litestar.types import Guard

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

AnyConnection: TypeAlias = ASGIConnection[Any, Any, Any, Any]

CALLER = "caller"
"""The key of the request's state that holds the name of the caller, by its token."""
_BEARER = "bearer"
_LONGEST_QUOTE = 100


def recognise(allocator: Allocator, tokens: Tokens | None) -> Guard:
    """A guard that gives each authenticated caller the allocator it may use; without tokens, every local caller."""

    def guard(connection: AnyConnection, _handler: BaseRouteHandler) -> None:
        if tokens is None:
            _check_host(connection.headers.get("host", ""))
            connection.scope["auth"] = allocator
            return
        holder = tokens.holder(_token(connection.headers.get("authorization", "")))
        if holder is None:
            raise Unauthenticated("the token is not known here: have it added to the allocator's tokens file")
        connection.scope["state"][CALLER] = str(holder)
        connection.scope["auth"] = CallerAllocator(allocator, holder.cluster) if holder.cluster else allocator

    return guard


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
