"""Requests that arrive twice."""

import asyncio

from podtide.simulation.faults.line_fault import Carriage, Request, RequestFault, Send, T

_WITHIN_SECONDS = 10.0


class Duplicate(RequestFault):
    """A proxy that repeats what it got no answer to: the request comes again, some time after it was answered."""

    name = "duplicate"
    rate = 0.03

    def concerns(self, request: Request) -> bool:
        """Only what changes something: reading twice is nothing."""
        return request.writes

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Answer the first, and let the second come late."""
        answer = await send()
        seconds = carriage.chance.uniform(0.0, _WITHIN_SECONDS)

        async def again() -> None:
            await asyncio.sleep(seconds)
            await resend()

        carriage.leave(again())
        return answer
