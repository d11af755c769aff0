"""Refusals of an API server that has nothing against the request: 409, 429 and 500."""

from podtide.cluster.port import Conflict, Throttled
from podtide.simulation.faults.line_fault import CLUSTER, Carriage, Request, RequestFault, Send, T

_MOST_RETRY_SECONDS = 5.0
_CONDITIONAL = frozenset({"replace", "replace_status", "apply"})


class ConflictAnswer(RequestFault):
    """409: somebody else wrote the object a moment before."""

    name = "conflict"
    rate = 0.03

    def concerns(self, request: Request) -> bool:
        """Writes that depend on what is there."""
        return request.port == CLUSTER and request.verb in _CONDITIONAL

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Refuse."""
        del send, resend
        raise Conflict(f"{carriage.request}: the object has been modified")


class ThrottledAnswer(RequestFault):
    """429: the API server has too much to do."""

    name = "throttled"
    rate = 0.02

    def concerns(self, request: Request) -> bool:
        """Whatever is asked of the cluster."""
        return request.port == CLUSTER

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Refuse, and say when to come back."""
        del send, resend
        raise Throttled(
            f"{carriage.request}: too many requests",
            retry_after_seconds=carriage.chance.uniform(0.0, _MOST_RETRY_SECONDS),
        )


class ServerError(RequestFault):
    """500: something broke in the server, before or after it did what it was asked for."""

    name = "server-error"
    rate = 0.02

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Do it or not, and say that it failed."""
        del resend
        if carriage.chance.random() < 0.5:  # noqa: PLR2004 - one as likely as the other
            await send()
        raise carriage.request.unanswered("internal error")
