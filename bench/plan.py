"""How long a plan for a large cluster takes: it must be instant, or people would not compare."""

from collections.abc import Iterator
from fractions import Fraction
from time import process_time

from podtide.core.plan.advice import advise
from podtide.core.plan.count_or_percent import CountOrPercent
from podtide.core.plan.fit import FitQuestion, KnownDemand, decide_fit
from podtide.core.plan.node_loads import PlannedLoad, WorstCase, deal, worst_of
from podtide.core.plan.sizing import PlanQuestion, PlanStrategy, plan_batch
from podtide.core.subnet.batch_bounds import BatchBounds

PART = "plan"
NODES = 5_000
CAPACITY = 2**19 - 3
OF_BATCHES = (PlanStrategy.REACTIVE, PlanStrategy.FIXED, PlanStrategy.ADAPTIVE)


def measure() -> Iterator[tuple[str, str]]:
    """Plan 5,000 nodes of 10 to 110 pods for five batches and three strategies, and ask whether more pods fit."""
    start = process_time()
    loads = deal(dict.fromkeys(range(10, 111), 1), NODES)
    case = WorstCase(
        growth=CountOrPercent(part=Fraction(1, 10)),
        burst=Fraction(3, 2),
        zones=3,
        lost_zones=1,
        surge=CountOrPercent(count=50),
    )
    question = PlanQuestion(rest=PlannedLoad(live=loads), worst=worst_of(loads, case), capacity=CAPACITY)
    plans = [
        plan_batch(strategy, rung.batch, question) for strategy in OF_BATCHES for rung in BatchBounds().rungs
    ]
    advise(plans, question)
    yield "plan of 5,000 nodes, 5 batches by 3 strategies, with advice", f"{process_time() - start:.2f} CPU s"
    start = process_time()
    decide_fit(
        FitQuestion(demand=KnownDemand(low=loads, high=loads), capacity=CAPACITY, pods=50_000, nodes=100)
    )
    yield "whether 50,000 pods fit beside those of 5,000 nodes", f"{process_time() - start:.2f} CPU s"
