"""Faults of requests on their way to a server: lost, late, or carried out twice."""

import asyncio

from podtide.simulation.faults.line_fault import CLUSTER, FaultContext, LineRequest, RequestFault, Send, T

_TIMEOUT_SECONDS = 5.0
_USUAL_DELAY_SECONDS = 0.5
_LONG_DELAY_SECONDS = 30.0
_LONG_DELAYS = 0.1
_DUPLICATE_WITHIN_SECONDS = 10.0
_CREATE_AGAIN_WITHIN_SECONDS = 280.0


class LostRequest(RequestFault):
    """A connection that broke, or a load balancer without a server behind it, before the request was carried out."""

    name = "lost-request"
    rate = 0.02

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Fail after a while, without sending the request."""
        del send, resend
        await asyncio.sleep(context.chance.uniform(0.0, _TIMEOUT_SECONDS))
        raise context.request.unanswered("the connection broke before it arrived")


class Delay(RequestFault):
    """A busy network or server. What has left a program arrives even if the program has ended meanwhile."""

    name = "delay"
    rate = 0.1

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Send the request late, even if its caller is cancelled meanwhile."""
        del send
        longest = _LONG_DELAY_SECONDS if context.chance.random() < _LONG_DELAYS else _USUAL_DELAY_SECONDS
        seconds = context.chance.uniform(0.0, longest)

        async def arrive_late() -> T:
            await asyncio.sleep(seconds)
            return await resend()

        arriving = asyncio.ensure_future(arrive_late())
        context.leave(arriving)
        return await asyncio.shield(arriving)


class Duplicate(RequestFault):
    """A proxy that repeats what it got no answer to: the request comes again, some time after it was answered."""

    name = "duplicate"
    rate = 0.03

    def concerns(self, request: LineRequest) -> bool:
        """Whether the request is a write: a repeated read changes nothing."""
        return request.writes

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Send the request, and again some seconds later."""
        return await _twice(context, send, resend, within_seconds=_DUPLICATE_WITHIN_SECONDS)


class LateCreate(RequestFault):
    """A request to create an object comes again, minutes after it was answered, when the object may be deleted.

    All other requests that are sent twice carry the version or the uid of their object, and can be refused by that. This
    one cannot: the object it creates must be harmless, whatever its kind.
    """

    name = "late-create"
    rate = 0.1

    def concerns(self, request: LineRequest) -> bool:
        """Whether the request creates an object of any kind."""
        return request.port == CLUSTER and request.verb == "create"

    async def carry(self, context: FaultContext, send: Send[T], resend: Send[T]) -> T:
        """Send the request, and again within a few minutes."""
        return await _twice(context, send, resend, within_seconds=_CREATE_AGAIN_WITHIN_SECONDS)


async def _twice(context: FaultContext, send: Send[T], resend: Send[T], *, within_seconds: float) -> T:
    answer = await send()
    seconds = context.chance.uniform(0.0, within_seconds)

    async def again() -> None:
        await asyncio.sleep(seconds)
        await resend()

    context.leave(again())
    return answer
