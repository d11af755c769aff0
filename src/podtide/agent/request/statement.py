"""When the node writes which statement beside its request.

The batch of a subnet is decided from the statements of its nodes. So every new request carries a statement (see
`core.subnet.statement`), and beside an unchanged request

    none that belongs to it, or one with other parameters   a statement is written at once: the answer to a new batch
    another demand, below the top rung                      one is written later (see `core.subnet.statement_refresh`)
    other pods than a scheduler is told of                  once the demand has rested (see `pod_requests`)

A statement is made only for the request that was computed from it. A write that keeps an older request, because a smaller
one has to wait, carries the statement that is there, or none.

A cluster may drop annotations. Writing the statement again and again would never end: after one was dropped, none is
written by itself until a write of a request returned with its statement.
"""

from collections.abc import Mapping
from random import Random

from msgspec import structs

from podtide.agent.request.target import RequestTarget
from podtide.core.subnet.statement import Statement
from podtide.core.subnet.statement_refresh import Restating, makes_a_difference
from podtide.resources.statement_annotation import MOST_NUMBER, number_in
from podtide.runtime.clock import Clock


class StatementSchedule:
    """Decides which statement is written, and when. The requester writes it."""

    def __init__(self, *, clock: Clock, randomness: Random) -> None:
        self.is_heard = True
        """Whether the last write returned with its statement."""
        self._clock = clock
        self._randomness = randomness
        self._restating = Restating()
        self._number = 0

    def see(self, demand: int, now: float, said: Statement | None) -> None:
        """Take the current demand into account, beside what was stated last."""
        stated = None if said is None else said.demand
        self._restating = self._restating.seen(demand, now, self._randomness.random(), stated=stated)

    def is_missing(self, target: RequestTarget, requested: int) -> bool:
        """Whether the request in the object needs a statement at once."""
        return self._may_state(target, requested) and not target.is_answered

    def anew_at(
        self,
        target: RequestTarget,
        requested: int,
        *,
        unrequested_differs: bool = False,
        is_placed: bool = False,
    ) -> float | None:
        """When to write a new statement beside the request in the object; None when there is no need.

        With placement a node publishes by what it stated. So where pods request an address, any other demand below the top
        rung is stated, a larger one soon, and so is another number of pods that request none.
        """
        if not self._may_state(target, requested) or not target.is_answered:
            return None
        said, now = target.said, target.statement
        assert said is not None
        assert now is not None
        grown_at = self._restating.grown_at
        if is_placed and grown_at is not None and now.batch < now.top:
            return grown_at
        if is_placed and (unrequested_differs or (said.demand != now.demand and now.batch < now.top)):
            return self._restating.rested_at
        return self._restating.due_at if makes_a_difference(said, now) else None

    def stated_anew(self, now: float) -> None:
        """A new statement was written beside an unchanged request."""
        self._restating = self._restating.stated(now)

    def statement(
        self, target: RequestTarget, request: int, annotations: Mapping[str, str]
    ) -> Statement | None:
        """The statement for a write of this request to an object with these annotations."""
        said, statement = target.said, target.statement
        if statement is None or request != target.request:
            return said
        if said is not None and structs.replace(said, number=0) == statement:
            return said
        return structs.replace(statement, number=self._next_number(annotations))

    def _may_state(self, target: RequestTarget, requested: int) -> bool:
        return self.is_heard and target.statement is not None and target.request == requested

    def _next_number(self, annotations: Mapping[str, str]) -> int:
        """A number above all before it, also after a restart with a stale cache or with a clock that was set back."""
        after = max(number_in(annotations), self._number) + 1
        self._number = min(max(after, int(self._clock.wall() * 1000)), MOST_NUMBER)
        return self._number
