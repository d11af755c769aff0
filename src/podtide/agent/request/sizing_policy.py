"""How many addresses a node should request: the decision alone, so that it can be replaced.

`ExactPolicy` is podtide's: one step from demand to request. `ReactivePolicy` is the baseline it is compared with: the
pool of today's CNS, which knows its assignments but not the pods that are still to come. Everything else around the
decision is the same program.
"""

from typing import Protocol

from msgspec import Struct

from podtide.core.subnet.reactive_baseline import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request


class PoolSituation(Struct, frozen=True, kw_only=True):
    """The addresses of one family on the node, over all of its network containers, and the demand for them."""

    demand: int
    primaries: int
    requested: int
    held: int
    assigned: int
    releasing: int


class Decided(Protocol):
    """A decision. Its text gives the reasons with their numbers."""

    @property
    def request(self) -> int:
        """How many addresses to request, over all of the family's network containers."""
        ...


class RequestPolicy(Protocol):
    """Decides how many addresses to request."""

    @property
    def states_demand(self) -> bool:
        """Whether the request depends only on demand and the parameters in force, so that these are stated beside it."""
        ...

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for this situation."""
        ...


class ExactPolicy:
    """From demand to request in one step (see `core.subnet.scaling`)."""

    states_demand = True

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for this situation, whatever is requested and held now."""
        return decide_request(situation.demand, scaler, situation.primaries)


class ReactiveDecision(Struct, frozen=True):
    """The request of the baseline, with the state it was computed from."""

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

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for this situation. Pods without an address are ignored."""
        pool = ReactivePool(
            requested=situation.requested,
            held=situation.held,
            assigned=situation.assigned,
            releasing=situation.releasing,
        )
        return ReactiveDecision(decide_reactive_request(pool, scaler), pool, scaler)
