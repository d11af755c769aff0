"""How many addresses a cluster takes, and how many pods get one, by each way to size a node's pool.

    reactive    as Azure CNS: one batch for good, one step at a time, and a node's primary on top (see `reactive_pool`)
    fixed       podtide's formula with one batch for good: nothing is given back when the subnet runs low
    adaptive    podtide: the batch that `decide_batch` puts in force for the subnet, up to the one that is given
    warm        as the AWS VPC CNI: a number of warm addresses, no batch (see `warm_pool`)

What is counted is where pools come to rest under a load. Where a subnet has too little for all that nodes want, all but
the adaptive one serve nodes in turn, the fullest first: reactive pools in whole batches, for so Azure CNS is granted. The adaptive one
gives back what is not needed until every pod has its address, or none is left: a pod costs one address wherever it is, and
a node one for itself.
"""

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podtide.core.errors import InvalidPlan
from podtide.core.plan.node_loads import NodeLoads, PlannedLoad
from podtide.core.plan.prefix_capacity import prefix_capacity, smallest_prefix
from podtide.core.plan.reactive_pool import resting_request
from podtide.core.plan.settled_batch import PlannedSubnet, SettledBatch, settle
from podtide.core.plan.warm_pool import WarmTarget, warm_holding
from podtide.core.subnet.batch import BatchInForce
from podtide.core.subnet.batch_bounds import BatchBounds, check_fit
from podtide.core.subnet.demand_by_batch import ReservedRange
from podtide.core.subnet.exhaustion import Thresholds, judge_exhaustion
from podtide.core.subnet.layout import MOST_ADDRESSES
from podtide.core.subnet.scaler import DEFAULT_BUFFER, DEFAULT_MAX_IPS, Scaler, SubnetScaler
from podtide.core.subnet.statement import StatedDemand, taken_at


class PlanStrategy(StrEnum):
    """A way to size nodes' pools."""

    REACTIVE = "reactive"
    FIXED = "fixed"
    ADAPTIVE = "adaptive"
    WARM = "warm"


class PlanQuestion(Struct, frozen=True, kw_only=True):
    """The cluster and the subnet that a plan is made for."""

    rest: PlannedLoad
    worst: PlannedLoad
    capacity: int | None = None
    """Q; None where no subnet is chosen yet, and then it is as large as need be."""
    buffer: Fraction = DEFAULT_BUFFER
    thresholds: Thresholds = Thresholds()
    max_ips: int = DEFAULT_MAX_IPS
    kept_back: int = 0
    """Addresses of a CIDR that are kept back beside those that always are."""
    address_bits: int = 32
    warm: WarmTarget | None = None
    """What the warm strategy is by, where it is to be compared."""

    def __post_init__(self) -> None:
        if not self.rest.nodes:
            raise InvalidPlan("0 nodes is refused: a plan is made for at least 1")


class PlannedHolding(Struct, frozen=True, kw_only=True):
    """What a strategy takes of the subnet under one load, once it is at rest."""

    reserved: ReservedRange
    """What nodes want to hold, also where there is less. Least and most differ where a pool's history decides."""
    batch: int
    """The batch in force."""
    exhausted: bool = False
    starved: bool = False
    pods: int
    served: int
    """Pods that get an address."""

    @property
    def serves_every_pod(self) -> bool:
        """Whether each pod gets an address."""
        return self.served == self.pods


class BatchPlan(Struct, frozen=True, kw_only=True):
    """One strategy with one batch, at rest and at worst."""

    strategy: PlanStrategy
    batch: int
    rest: PlannedHolding
    worst: PlannedHolding
    smallest_prefix: int | None
    """The prefix length of the smallest CIDR in which every pod gets an address; None where no CIDR is large enough."""

    @property
    def reserved_at_worst(self) -> ReservedRange:
        """The least and the most reserved in between: a smaller batch may hold less at worst than was held before."""
        rest, worst = self.rest.reserved, self.worst.reserved
        return ReservedRange(max(rest.least, worst.least), max(rest.most, worst.most))


def plan_batch(strategy: PlanStrategy, batch: int, question: PlanQuestion) -> BatchPlan:
    """The plan of a strategy with a batch; for the adaptive one it is the largest."""
    bounds = BatchBounds(batch, question.buffer, question.thresholds)
    check_fit(bounds, question.max_ips)
    rest, worst = _PLANNERS[strategy](question, bounds)
    return BatchPlan(
        strategy=strategy,
        batch=batch,
        rest=rest,
        worst=worst,
        smallest_prefix=_smallest_prefix(strategy, bounds, question),
    )


def _smallest_prefix(strategy: PlanStrategy, bounds: BatchBounds, question: PlanQuestion) -> int | None:
    loads = (question.rest, question.worst)
    if any(pods > question.max_ips for load in loads for pods in load.live):
        return None
    least = max(load.nodes + load.pods for load in loads)
    from_prefix = smallest_prefix(least, question.address_bits, question.kept_back)
    for prefix in range(-1 if from_prefix is None else from_prefix, -1, -1):
        capacity = prefix_capacity(prefix, question.address_bits, question.kept_back)
        holdings = _PLANNERS[strategy](replace(question, capacity=capacity), bounds)
        if all(holding.serves_every_pod for holding in holdings):
            return prefix
    return None


_Planner = Callable[[PlanQuestion, BatchBounds], tuple[PlannedHolding, PlannedHolding]]


class NodeHolding(Struct, frozen=True):
    """What a node wants to hold: addresses of its own, and for pods the least and the most, by its history."""

    own: int
    least: int
    most: int


def _reactive(question: PlanQuestion, bounds: BatchBounds) -> tuple[PlannedHolding, PlannedHolding]:
    scaler = Scaler(bounds.top, question.buffer, question.max_ips)

    def wanted(pods: int) -> NodeHolding:
        request = resting_request(pods, scaler)
        return NodeHolding(1, request.least, request.most)

    return _for_good(question, bounds, wanted, step=bounds.top)


def _fixed(question: PlanQuestion, bounds: BatchBounds) -> tuple[PlannedHolding, PlannedHolding]:
    rung = bounds.rungs[-1]

    def wanted(pods: int) -> NodeHolding:
        request = _taken(pods, rung, question) - 1
        return NodeHolding(1, request, request)

    return _for_good(question, bounds, wanted)


def _warm(question: PlanQuestion, bounds: BatchBounds) -> tuple[PlannedHolding, PlannedHolding]:
    target = question.warm
    if target is None:
        raise InvalidPlan("the warm strategy needs a target: say how many addresses a node keeps warm")

    def wanted(pods: int) -> NodeHolding:
        held = warm_holding(pods, target)
        return NodeHolding(held.interfaces, held.secondary, held.secondary)

    return _for_good(question, bounds, wanted)


def _for_good(
    question: PlanQuestion, bounds: BatchBounds, wanted: Callable[[int], NodeHolding], step: int = 1
) -> tuple[PlannedHolding, PlannedHolding]:
    """What nodes hold that want the same however little is left."""

    def holding(load: PlannedLoad) -> PlannedHolding:
        gone, live = _total(load.gone, wanted), _total(load.live, wanted)
        reserved = ReservedRange(gone.least + live.least, gone.most + live.most)
        room = MOST_ADDRESSES if question.capacity is None else question.capacity - gone.most
        return PlannedHolding(
            reserved=reserved,
            batch=bounds.top,
            exhausted=_is_exhausted(reserved.most, question),
            pods=load.pods,
            served=_served_in_turn(load.live, wanted, max(0, room), step),
        )

    return holding(question.rest), holding(question.worst)


def _total(loads: NodeLoads, wanted: Callable[[int], NodeHolding]) -> ReservedRange:
    each = [(wanted(pods), count) for pods, count in loads.items()]
    return ReservedRange(
        sum((one.own + one.least) * count for one, count in each),
        sum((one.own + one.most) * count for one, count in each),
    )


def _served_in_turn(loads: NodeLoads, wanted: Callable[[int], NodeHolding], room: int, step: int) -> int:
    """How many pods get an address if nodes take what they want one after the other, the fullest first.

    A node takes its own addresses, and then those for pods in steps, as far as there is room for a whole one.
    """
    served = 0
    for pods in sorted(loads, reverse=True):
        node = wanted(pods)
        whole = min(loads[pods], room // (node.own + node.most))
        served += whole * min(pods, node.most)
        room -= whole * (node.own + node.most)
        if whole < loads[pods]:
            return served + min(pods, max(0, room - node.own) // step * step)
    return served


def _is_exhausted(reserved: int, question: PlanQuestion) -> bool:
    if not question.capacity:
        return False
    return judge_exhaustion(
        exhausted=False, reserved=reserved, capacity=question.capacity, thresholds=question.thresholds
    ).exhausted


def _adaptive(question: PlanQuestion, bounds: BatchBounds) -> tuple[PlannedHolding, PlannedHolding]:
    capacity = MOST_ADDRESSES if question.capacity is None else question.capacity

    def come_to_rest(loads: NodeLoads, standing: BatchInForce | None, gone: int = 0) -> SettledBatch:
        subnet = PlannedSubnet(bounds=bounds, capacity=capacity, max_ips=question.max_ips, ungoverned=gone)
        return settle(loads, subnet, standing)

    rest = come_to_rest(question.rest.live, None)
    worst = question.worst
    before = rest if worst.before is None else come_to_rest(worst.before, rest.standing)
    gone = sum(_taken(pods, before.scaler, question) * count for pods, count in worst.gone.items())
    at_worst = come_to_rest(worst.live, before.standing, gone)
    return _held(rest, question.rest, question), _held(at_worst, worst, question)


def _held(settled: SettledBatch, load: PlannedLoad, question: PlanQuestion) -> PlannedHolding:
    within_maximum = sum(min(pods, question.max_ips) * count for pods, count in load.live.items())
    wanted = settled.reserved + settled.owed
    return PlannedHolding(
        reserved=ReservedRange(wanted, wanted),
        batch=settled.scaler.batch,
        exhausted=settled.exhausted,
        starved=settled.starved,
        pods=load.pods,
        served=max(0, within_maximum - settled.owed),
    )


def _taken(pods: int, rung: SubnetScaler, question: PlanQuestion) -> int:
    """h(U, B) of a node with one network container."""
    return taken_at(pods, StatedDemand(max_ips=question.max_ips), rung)


_PLANNERS: dict[PlanStrategy, _Planner] = {
    PlanStrategy.REACTIVE: _reactive,
    PlanStrategy.FIXED: _fixed,
    PlanStrategy.ADAPTIVE: _adaptive,
    PlanStrategy.WARM: _warm,
}
