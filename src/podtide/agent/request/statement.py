"""What the node states beside its request, and when it does so although the request stays as it is.

The batch of a subnet is decided from what its nodes stated. So every new request carries a statement (see
`core.subnet.statement`), and beside a request that stays

    none that belongs, or by other parameters   it is stated at once: the node's answer to a new batch
    another demand, below the top rung          it is stated anew, in its own time (see `core.subnet.statement_refresh`)

A statement is made only for a request that follows from it. A write that keeps an older request, because a smaller
one has to stand first, carries the statement that is there, or none.

A cluster may drop what it does not know. StatementSchedule it again and again would be a write without end: nothing is stated
for its own sake until a write of a request came back with its statement.
"""

from collections.abc import Mapping
from random import Random

from msgspec import structs

from podtide.agent.request.target import Target
from podtide.core.subnet.statement import Statement
from podtide.core.subnet.statement_refresh import Restating, makes_a_difference
from podtide.resources.statement_annotation import MOST_NUMBER, number_in
from podtide.runtime.clock import Clock


class StatementSchedule:
    """Decides what is stated, and when; the requester writes it."""

    def __init__(self, *, clock: Clock, randomness: Random) -> None:
        self.is_heard = True
        """Whether the last statement was in the cluster's answer."""
        self._clock = clock
        self._randomness = randomness
        self._restating = Restating()
        self._number = 0

    def see(self, demand: int, now: float) -> None:
        """The node's demand is this now."""
        self._restating = self._restating.seen(demand, now, self._randomness.random())

    def is_missing(self, target: Target, requested: int) -> bool:
        """Whether the node owes a statement for the request that is there."""
        return self._may_state(target, requested) and not target.is_answered

    def anew_at(self, target: Target, requested: int) -> float | None:
        """When the demand behind the request that is there is stated anew; None when there is no need."""
        if not self._may_state(target, requested) or not target.is_answered:
            return None
        assert target.said is not None
        assert target.statement is not None
        return self._restating.due_at if makes_a_difference(target.said, target.statement) else None

    def stated_anew(self, now: float) -> None:
        """It was, and for no other reason."""
        self._restating = self._restating.stated(now)

    def statement(self, target: Target, request: int, annotations: Mapping[str, str]) -> Statement | None:
        """What a write of this request carries into an object with these annotations."""
        said, statement = target.said, target.statement
        if statement is None or request != target.request:
            return said
        if said is not None and structs.replace(said, number=0) == statement:
            return said
        return structs.replace(statement, number=self._next_number(annotations))

    def _may_state(self, target: Target, requested: int) -> bool:
        return self.is_heard and target.statement is not None and target.request == requested

    def _next_number(self, annotations: Mapping[str, str]) -> int:
        """More than any before: also after a restart on an old copy of the object, and with a clock that was set back."""
        after = max(number_in(annotations), self._number) + 1
        self._number = min(max(after, int(self._clock.wall() * 1000)), MOST_NUMBER)
        return self._number
