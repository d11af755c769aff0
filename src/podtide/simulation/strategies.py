"""Ways to size nodes' pools that can be run side by side: what agents request, who decides the batch, whether an ADD waits.

    adaptive    podtide: the request follows from the pods, the batch from the demand of all nodes, and an ADD waits
    fixed       the same, with one batch for ever
    reactive    Azure CNS, version 1: one batch more or less at a time, by what is assigned, and an ADD fails at once

Everything else around these is the same program: `podtide plan replay` runs them on a trace of pods or on a story, and the
comparison of docs/comparison.md puts them beside the steps of the design papers.
"""

from msgspec import Struct

from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.core.plan.sizing import PlanStrategy
from podtide.core.subnet.batch import (
    BatchDelays,
    BatchInForce,
    BatchMove,
    BatchRule,
    SubnetDecision,
    SubnetReading,
    decide_batch,
)
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.exhaustion import judge_exhaustion
from podtide.simulation.nodes.other_agents import ReactivePolicy


def keep_batch(
    standing: BatchInForce, reading: SubnetReading, bounds: BatchBounds, delays: BatchDelays | None = None
) -> SubnetDecision:
    """The largest batch allowed, whatever the subnet has left.

    Exhausted is judged as ever. Starved is a subnet that owes and has nothing left: no smaller batch is tried before.
    """
    del delays  # nothing ever changes that would have to be waited for
    exhaustion = judge_exhaustion(
        exhausted=standing.exhausted,
        reserved=reading.reserved,
        capacity=reading.capacity,
        thresholds=bounds.thresholds,
    )
    return SubnetDecision(
        scaler=bounds.rungs[-1],
        exhausted=exhaustion.exhausted,
        starved=reading.owed > 0 and reading.free == 0,
        step=BatchMove.NONE,
        reason="the batch is fixed",
        exhaustion=exhaustion,
    )


class Strategy(Struct, frozen=True):
    """A way to size nodes' pools."""

    name: str
    policy: RequestPolicy
    batch_rule: BatchRule = decide_batch
    """How the controller decides on the batch."""
    waits: bool = True
    """Whether an ADD waits for an address that was requested, instead of failing."""

    @property
    def follows(self) -> bool:
        """Whether its nodes use a batch that changes, instead of the configured one."""
        return self.batch_rule is not keep_batch


ADAPTIVE = Strategy(PlanStrategy.ADAPTIVE.value, ExactPolicy())
FIXED = Strategy(PlanStrategy.FIXED.value, ExactPolicy(), batch_rule=keep_batch)
REACTIVE = Strategy(PlanStrategy.REACTIVE.value, ReactivePolicy(), batch_rule=keep_batch, waits=False)

STRATEGIES = {strategy.name: strategy for strategy in (REACTIVE, FIXED, ADAPTIVE)}
"""Those that can be replayed, by name."""

GRANT_SECONDS = 5.0
"""From a request to its grant: "several seconds" in the papers."""
SANDBOX_SECONDS = 0.15
"""How long a kubelet takes for a sandbox; it creates one after the other."""
