"""Agents that are not podtide's: nodes of a cluster that migrates from Azure CNS, or stays with it.

They are the same program with another policy (`agent.request.sizing_policy`), and do not state their demand: the
controller has to derive it from their requests.
"""

from podtide.agent.request.sizing_policy import (
    Decided,
    ExactPolicy,
    PoolSituation,
    ReactivePolicy,
    RequestPolicy,
)
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request


class FormulaPolicy:
    """Azure CNS, version 2: from demand to request in one step, and a node's own address comes on top of its batches."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request by the formula, without primaries."""
        return decide_request(situation.demand, scaler, 0)


class BlindPolicy(ReactivePolicy):
    """Azure CNS, version 1: one batch more or less at a time, by what is assigned. It does not see pods that wait."""

    states_demand = False


POLICIES: dict[str, RequestPolicy] = {
    "podtide": ExactPolicy(),
    "cns-v1": BlindPolicy(),
    "cns-v2": FormulaPolicy(),
}
"""The policies of agents, by name."""


def sees_pods(policy: RequestPolicy) -> bool:
    """Whether an agent requests addresses for waiting pods."""
    return not isinstance(policy, ReactivePolicy)
