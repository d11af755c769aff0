"""Requests that never arrive."""

import asyncio

from podtide.simulation.faults.line_fault import Carriage, RequestFault, Send, T

_TIMEOUT_SECONDS = 5.0


class LostRequest(RequestFault):
    """A connection that broke, or a load balancer without a server behind it, before the request was carried out."""

    name = "lost-request"
    rate = 0.02

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Say after a while that there was no answer."""
        del send, resend
        await asyncio.sleep(carriage.chance.uniform(0.0, _TIMEOUT_SECONDS))
        raise carriage.request.unanswered("the connection broke before it arrived")
