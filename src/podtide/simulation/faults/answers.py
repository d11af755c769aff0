"""Faults of answers: lost, refused without a reason in the request (409, 429, 500), or from a stale cache."""

from random import Random

from podtide.cluster.embedded.paging import Position, to_token
from podtide.cluster.port import Conflict, Gone, Page, R, Throttled
from podtide.simulation.faults.line_fault import (
    CLUSTER,
    FaultContext,
    LineRequest,
    ListFault,
    Relist,
    RequestFault,
    Send,
    T,
)

_MOST_RETRY_SECONDS = 5.0
_CONDITIONAL = frozenset({"replace", "replace_status", "apply", "patch"})
_DOUBLINGS = 10.0
"""A cache may be one write behind or a thousand, and each time as much again is as likely as the last."""


class LostAnswer(RequestFault):
    """A server or a connection that died between the commit and the answer."""

    name = "lost-answer"
    rate = 0.02

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Send the request, and fail as if it had not been answered."""
        del resend
        await send()
        raise context.request.unanswered("the connection broke before the answer came")


class ConflictAnswer(RequestFault):
    """409: another client wrote the object a moment before."""

    name = "conflict"
    rate = 0.03

    def concerns(self, request: LineRequest) -> bool:
        """Whether the request is a write that depends on the object's present state."""
        return request.port == CLUSTER and request.verb in _CONDITIONAL

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Refuse."""
        del send, resend
        raise Conflict(f"{context.request}: the object has been modified")


class ThrottledAnswer(RequestFault):
    """429: the API server has too much to do."""

    name = "throttled"
    rate = 0.02

    def concerns(self, request: LineRequest) -> bool:
        """Whether the request is one to the cluster."""
        return request.port == CLUSTER

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Refuse, with the seconds after which to retry."""
        del send, resend
        raise Throttled(
            f"{context.request}: too many requests",
            retry_after_seconds=context.chance.uniform(0.0, _MOST_RETRY_SECONDS),
        )


class ServerError(RequestFault):
    """500: something broke in the server, before or after it carried out the request."""

    name = "server-error"
    rate = 0.02

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Send the request or not, and fail."""
        del resend
        if context.chance.random() < 0.5:  # noqa: PLR2004 - one as likely as the other
            await send()
        raise context.request.unanswered("internal error")


class StaleList(ListFault):
    """A list answered from an API server's cache that is behind, with the resourceVersion that it shows.

    A watch from there catches up: what the list shows was true at that version.
    """

    name = "stale-list"
    rate = 0.3

    async def answer(self, newest: Page[R], relist: Relist[R], chance: Random) -> Page[R]:
        """The list as it was some writes ago, or the newest if that version is compacted."""
        writes = int(2 ** chance.uniform(0.0, _DOUBLINGS))
        version = max(1, int(newest.resource_version) - writes)
        try:
            return await relist(to_token(Position(version, "")))
        except Gone:
            return newest
