"""Agents that are not podtide's: nodes of a cluster that migrates from Azure CNS, or stays with it.

They are the same program with another policy (`agent.request.sizing_policy`), and do not state their demand: the
controller has to derive it from their requests.

The reactive pool of Azure CNS, version 1, steps from its last request when too little or too much is free, and waits for
the grant before it can judge again. So a burst takes as many round trips as batches. A step ends at a multiple of the
batch: from a request in between (the node's limit, another batch, an edit out of band) it is a short one, and takes a
round trip all the same. What the program does with odd parameters is done here too: it takes a buffer of 1 % to 100 %, and
no batch above the node's limit. Two things are not as there: fractions are exact, and a request does not go below 0.
"""

from fractions import Fraction

from msgspec import Struct

from podtide.agent.request.sizing_policy import (
    Decided,
    ExactPolicy,
    PoolSituation,
    RequestPolicy,
)
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request

_HALF = Fraction(1, 2)
_LEAST_BUFFER = Fraction(1, 100)
_MOST_BUFFER = Fraction(1)


class FormulaPolicy:
    """Azure CNS, version 2: from demand to request in one step, and a node's own address comes on top of its batches."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request by the formula, without primaries."""
        return decide_request(situation.demand, scaler, 0)


class ReactivePool(Struct, frozen=True):
    """The counts that the reactive monitor decides from."""

    requested: int
    held: int
    assigned: int
    releasing: int = 0


def decide_reactive_request(pool: ReactivePool, scaler: Scaler) -> int:
    """The next request: up or down to the next multiple of the batch, or the same.

    Growth depends on what will be free once the request is granted, shrinking on what is free now.
    """
    taken = _as_taken(scaler)
    beyond = pool.requested % taken.batch
    if pool.requested - pool.assigned < _half_up(taken.minimum_free):
        return min(pool.requested - beyond + taken.batch, taken.max_ips)
    if pool.held - pool.assigned - pool.releasing >= _half_up(taken.maximum_free):
        return max(pool.requested - (beyond or taken.batch), 0)
    return pool.requested


def _as_taken(scaler: Scaler) -> Scaler:
    """The parameters, clamped to the program's bounds."""
    return Scaler(
        batch=min(scaler.batch, scaler.max_ips),
        buffer=min(max(scaler.buffer, _LEAST_BUFFER), _MOST_BUFFER),
        max_ips=scaler.max_ips,
    )


def _half_up(free: Fraction) -> int:
    return int(free + _HALF)


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
    """Azure CNS, version 1: one batch more or less at a time, by what is assigned. It does not see pods that wait."""

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


POLICIES: dict[str, RequestPolicy] = {
    "podtide": ExactPolicy(),
    "cns-v1": ReactivePolicy(),
    "cns-v2": FormulaPolicy(),
}
"""The policies of agents, by name."""


def sees_pods(policy: RequestPolicy) -> bool:
    """Whether an agent requests addresses for waiting pods."""
    return not isinstance(policy, ReactivePolicy)
