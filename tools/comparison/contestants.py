"""Four ways to size a node's pool, each one step of the design papers ahead of the one before, and podtide as it was and is.

    reactive         one batch more or less at a time, by what is assigned
    idempotent       the formula, by what is assigned
    pod-watching     the formula, by the pods that are scheduled
    adaptive batch   the same, with the batch that the controller puts in force for the subnet
    ladder           podtide as it was before: the batch goes one rung at a time, and agents do not state their demand
    podtide          adaptive batch, and an ADD waits for an address that is on its way

What differs is a `Strategy`: the policy of agents, how the controller decides on the batch, and whether an ADD waits.
"""

from msgspec import structs

from comparison.ladder_baseline import decide_by_ladder
from podtide.agent.request.sizing_policy import Decided, ExactPolicy, PoolSituation
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.simulation.strategies import ADAPTIVE, REACTIVE, Strategy, keep_batch


class AssignedOnly:
    """The formula of the papers' phase 2: from what is assigned to the request in one step. It does not see pods."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for the assigned addresses."""
        return decide_request(situation.assigned, scaler, situation.primaries)


class Unstated:
    """podtide's policy before agents stated the demand that a request follows from."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request of podtide's policy."""
        return decide_request(situation.demand, scaler, situation.primaries)


POD_WATCHING = Strategy("pod-watching", ExactPolicy(), batch_rule=keep_batch, waits=False)
IDEMPOTENT = Strategy("idempotent", AssignedOnly(), batch_rule=keep_batch, waits=False)
ADAPTIVE_BATCH = Strategy("adaptive batch", ExactPolicy(), waits=False)
LADDER = Strategy("ladder", Unstated(), batch_rule=decide_by_ladder)
PODTIDE = structs.replace(ADAPTIVE, name="podtide")
CONTESTANTS = (REACTIVE, IDEMPOTENT, POD_WATCHING, ADAPTIVE_BATCH, LADDER, PODTIDE)
