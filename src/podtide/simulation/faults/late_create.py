"""Requests to make an object that arrive once more, long after."""

import asyncio

from podtide.simulation.faults.line_fault import CLUSTER, Carriage, Request, RequestFault, Send, T

_LONGEST_SECONDS = 280.0


class LateCreate(RequestFault):
    """A request to make an object comes again, minutes after it was answered, when the object may be gone.

    All else that is sent twice carries the version or the uid of what it is about, and can be refused by that. This one
    cannot: whatever kind it is of, the object it makes must be harmless.
    """

    name = "late-create"
    rate = 0.1

    def concerns(self, request: Request) -> bool:
        """Whatever is made in the cluster, of any kind."""
        return request.port == CLUSTER and request.verb == "create"

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Answer the first, and let the second come in a few minutes."""
        answer = await send()
        seconds = carriage.chance.uniform(0.0, _LONGEST_SECONDS)

        async def again() -> None:
            await asyncio.sleep(seconds)
            await resend()

        carriage.leave(again())
        return answer
