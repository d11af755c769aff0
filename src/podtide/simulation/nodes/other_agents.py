"""Agents that are not podtide's: nodes of a cluster that migrates from Azure CNS, or stays with it.

They are the same program with another policy (`agent.request.sizing_policy`), and do not state their demand: the
controller has to derive it from their requests.

How the reactive pool of Azure CNS, version 1, decides is in `core.plan.reactive_pool`.
"""

from msgspec import Struct

from podtide.agent.request.sizing_policy import (
    Decided,
    ExactPolicy,
    PoolSituation,
    RequestPolicy,
)
from podtide.core.plan.reactive_pool import ReactivePool, decide_reactive_request
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request


class FormulaPolicy:
    """Azure CNS, version 2: from demand to request in one step, and a node's own address comes on top of its batches."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request by the formula, without primaries."""
        return decide_request(situation.demand, scaler, 0)


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
