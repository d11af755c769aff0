"""Four ways to size a node's pool, each one step of the design papers ahead of the one before, and podtide as it was and is.

    reactive         one batch more or less at a time, by what is assigned
    idempotent       the formula, by what is assigned
    pod-watching     the formula, by the pods that are scheduled
    adaptive batch   the same, with the batch that the controller puts in force for the subnet
    ladder           podtide as it was before: the batch goes one rung at a time, and agents do not state their demand
    podtide          adaptive batch, and an ADD waits for an address that is on its way

But for the ladder only agents differ: by their policy, by whether they follow the batch that the controller puts in
force, and by whether they let an ADD wait. The controller always decides on a batch; agents with a fixed one ignore it.
"""

from msgspec import Struct

from comparison.ladder_baseline import decide_by_ladder
from podtide.agent.request.sizing_policy import Decided, ExactPolicy, PoolSituation, RequestPolicy
from podtide.controller.subnets.subnet_reconciler import BatchRule
from podtide.core.subnet.batch import decide_batch
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.simulation.nodes.other_agents import ReactivePolicy


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


class FixedBatch:
    """Another policy with the configured batch and buffer, whatever is in force for the subnet."""

    states_demand = False

    def __init__(self, policy: RequestPolicy) -> None:
        self._policy = policy

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The other policy's request, with the configured batch."""
        return self._policy.decide(situation, Scaler(max_ips=scaler.max_ips))


class Contestant(Struct, frozen=True):
    """A way to size a node's pool."""

    name: str
    policy: RequestPolicy
    follows: bool = False
    """Whether its nodes use the batch and buffer in force for the subnet, instead of the configured ones."""
    waits: bool = False
    """Whether an ADD waits for an address that was requested, instead of failing."""
    batch_rule: BatchRule = decide_batch
    """How the controller decides on the batch."""

    @property
    def sizing(self) -> RequestPolicy:
        """The policy of its agents, with the batch that they use."""
        return self.policy if self.follows else FixedBatch(self.policy)


REACTIVE = Contestant("reactive", ReactivePolicy())
IDEMPOTENT = Contestant("idempotent", AssignedOnly())
POD_WATCHING = Contestant("pod-watching", ExactPolicy())
ADAPTIVE_BATCH = Contestant("adaptive batch", ExactPolicy(), follows=True)
LADDER = Contestant("ladder", Unstated(), follows=True, waits=True, batch_rule=decide_by_ladder)
PODTIDE = Contestant("podtide", ExactPolicy(), follows=True, waits=True)
CONTESTANTS = (REACTIVE, IDEMPOTENT, POD_WATCHING, ADAPTIVE_BATCH, LADDER, PODTIDE)
