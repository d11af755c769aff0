"""How many addresses a node should ask for: the decision, and nothing else, so that it can be swapped.

`ExactPolicy` is podtide's: one step from demand to request. `ReactivePolicy` is the baseline it is compared with: the
pool of today's CNS, which knows its assignments but not the pods that are on their way. All else around the decision
is the same program.
"""

from typing import Protocol

from msgspec import Struct

from podtide.core.subnet.reactive_baseline import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request


class Situation(Struct, frozen=True, kw_only=True):
    """One family's addresses on the node, over all of its network containers, and who needs them."""

    demand: int
    primaries: int
    requested: int
    held: int
    assigned: int
    releasing: int


class Decided(Protocol):
    """A decision; its text gives the reasons, with their numbers."""

    @property
    def request(self) -> int:
        """How many addresses to ask for, over all of the family's network containers."""
        ...


class RequestPolicy(Protocol):
    """Decides; does nothing."""

    @property
    def states_demand(self) -> bool:
        """Whether a request follows from demand and the parameters in force alone, so that they are stated beside it."""
        ...

    def decide(self, situation: Situation, scaler: Scaler) -> Decided:
        """What to ask for in this situation."""
        ...


class ExactPolicy:
    """From demand to request in one step (see `core.subnet.scaling`)."""

    states_demand = True

    def decide(self, situation: Situation, scaler: Scaler) -> Decided:
        """See `RequestPolicy.decide`. What is requested and held now plays no part."""
        return decide_request(situation.demand, scaler, situation.primaries)


class ReactiveDecision(Struct, frozen=True):
    """What the baseline asks for, and from what it concluded that."""

    request: int
    pool: ReactivePool
    scaler: Scaler

    def __str__(self) -> str:
        pool = self.pool
        free = pool.held - pool.assigned - pool.releasing
        return (
            f"request {self.request} after {pool.requested}, in batches of {self.scaler.batch}; "
            f"{pool.assigned} assigned, {free} free of {pool.held} held"
        )


class ReactivePolicy:
    """One batch more or less at a time, by what is assigned (see `core.subnet.reactive_baseline`). For comparison only."""

    states_demand = False

    def decide(self, situation: Situation, scaler: Scaler) -> Decided:
        """See `RequestPolicy.decide`. Pods that hold no address are not seen."""
        pool = ReactivePool(
            requested=situation.requested,
            held=situation.held,
            assigned=situation.assigned,
            releasing=situation.releasing,
        )
        return ReactiveDecision(decide_reactive_request(pool, scaler), pool, scaler)
