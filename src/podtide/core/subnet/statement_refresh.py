"""When a node states its demand anew although its request stays as it is.

While the batch in force is below the top rung, whether a larger one fits is decided from what nodes stated. So a node
whose demand differs from what it stated last, in a way that makes a difference at some larger rung, says so: once its
demand has rested for a minute, with jitter so that a thousand nodes do not write at once, and at most every five
minutes. At the top rung no decision needs it, and no node writes it.

Where pods request addresses of a scheduler, every other demand below the top rung is stated once it has rested: what the node
publishes follows from it (see `placement`). A larger one is stated within seconds, whether it rests or not: pods may have used up what
the node publishes without a change of its request, and others wait for it to publish more; and what other nodes publish meanwhile is
decided by how many pods this one has. Smaller ones still rest for a minute, so pods that come and go cost nothing while they are no
more than were stated.
"""

from msgspec import Struct, structs

from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at

REST_SECONDS = 60.0
"""How long demand must have been the same."""
JITTER_SECONDS = 30.0
"""At most so much later."""
GROWN_SECONDS = 2.0
"""How long after demand exceeded what was stated it is stated, where pods request addresses: pods come in bursts."""
GROWN_JITTER_PART = 0.1
"""Of the jitter, so much is added to that."""
EVERY_SECONDS = 300.0
"""A node states its demand anew no more often than this."""


class Restating(Struct, frozen=True):
    """A node's state between two looks. A value: each step returns the next."""

    demand: int = -1
    rested_since: float = 0.0
    jitter_seconds: float = 0.0
    grown_at: float | None = None
    """The time at which a demand that exceeds what was stated is stated, where pods request addresses; None where it does not."""
    not_before: float = 0.0

    def seen(self, demand: int, now: float, chance: float, *, stated: int | None = None) -> "Restating":
        """The state after seeing this demand, beside what was stated last. `chance`, from 0 to 1, is the source of the jitter."""
        jitter = chance * JITTER_SECONDS
        grown_at = self.grown_at
        if stated is None or demand <= stated:
            grown_at = None
        elif grown_at is None:
            grown_at = now + GROWN_SECONDS + GROWN_JITTER_PART * jitter
        if demand == self.demand:
            return structs.replace(self, grown_at=grown_at)
        return structs.replace(
            self, demand=demand, rested_since=now, jitter_seconds=jitter, grown_at=grown_at
        )

    @property
    def rested_at(self) -> float:
        """The time at which the demand has rested."""
        return self.rested_since + REST_SECONDS + self.jitter_seconds

    @property
    def due_at(self) -> float:
        """The time at which a demand that makes a difference is stated anew."""
        return max(self.rested_at, self.not_before)

    def stated(self, now: float) -> "Restating":
        """The state after the demand was stated anew."""
        return structs.replace(self, not_before=now + EVERY_SECONDS)


def is_answered(said: Statement, now: Statement) -> bool:
    """Whether the statement was made with the parameters in force now."""
    return (said.batch, said.buffer, said.max_ips, said.primaries) == (
        now.batch,
        now.buffer,
        now.max_ips,
        now.primaries,
    )


def makes_a_difference(said: Statement, now: Statement) -> bool:
    """Whether the changed demand would change the choice of a larger rung."""
    if now.batch >= now.top:
        return False
    if said.top <= said.batch:
        return True  # stated at the top of its time, where only the window of its request counts
    return said.demand != now.demand and any(
        _request(said.demand, batch, now) != _request(now.demand, batch, now) for batch in _larger_rungs(now)
    )


def _larger_rungs(now: Statement) -> list[int]:
    """Powers of two between the batch in force and the top, and the top."""
    powers = (1 << exponent for exponent in range(now.batch.bit_length(), now.top.bit_length()))
    return sorted({*(power for power in powers if now.batch < power < now.top), now.top})


def _request(demand: int, batch: int, by: Statement) -> int:
    scaler = Scaler(min(batch, by.max_ips), by.buffer, by.max_ips)
    return request_at(demand, scaler, by.primaries)
