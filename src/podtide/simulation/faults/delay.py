"""Requests that take their time."""

import asyncio

from podtide.simulation.faults.line_fault import Carriage, RequestFault, Send, T

_USUAL_SECONDS = 0.5
_LONG_SECONDS = 30.0
_LONG_ONES = 0.1


class Delay(RequestFault):
    """A busy network or server. What has left a program arrives even if the program has ended meanwhile."""

    name = "delay"
    rate = 0.1

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Arrive late; a request that is given up arrives all the same."""
        del send
        longest = _LONG_SECONDS if carriage.chance.random() < _LONG_ONES else _USUAL_SECONDS
        seconds = carriage.chance.uniform(0.0, longest)

        async def arrive_late() -> T:
            await asyncio.sleep(seconds)
            return await resend()

        arriving = asyncio.ensure_future(arrive_late())
        carriage.leave(arriving)
        return await asyncio.shield(arriving)
