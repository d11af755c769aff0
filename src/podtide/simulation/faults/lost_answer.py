"""Answers that never arrive, though what was asked for is done."""

from podtide.simulation.faults.line_fault import Carriage, RequestFault, Send, T


class LostAnswer(RequestFault):
    """A server or a connection that died between the commit and the answer."""

    name = "lost-answer"
    rate = 0.02

    async def carry(self, carriage: Carriage, send: Send[T], resend: Send[T]) -> T:
        """Do it, and say that there was no answer."""
        del resend
        await send()
        raise carriage.request.unanswered("the connection broke before the answer came")
