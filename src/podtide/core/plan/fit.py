"""Whether more pods fit into a subnet as it is, and what gives way for them.

A pod costs one address on whichever node it lands, and a node one for itself, once nodes keep nothing free: that is where a
starved subnet ends (see `batch`). So whether all pods get an address does not depend on how they are spread over the nodes,
only on how many there are:

    needed = F + Σ (1 + U) + new nodes + new pods ≤ Q

Which batch is in force then does depend on it. It is computed for both extremes: spread evenly, and packed onto as few
nodes as can have them. Where nodes' demand is known as a window only (see `statement`), both of its ends count: pods fit if
they fit by the upper end, and do not if they do not fit by the lower one.
"""

from bisect import bisect_left
from collections import Counter
from enum import StrEnum

from msgspec import Struct

from podtide.core.errors import InvalidPlan
from podtide.core.plan.node_loads import NodeLoads, level, pack, pods_of
from podtide.core.plan.settled_batch import PlannedSubnet, SettledBatch, settle
from podtide.core.subnet.batch import STARVED, BatchDelays, BatchInForce, SubnetReading
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import SubnetDemand
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS


class KnownDemand(Struct, frozen=True, kw_only=True):
    """What a subnet's nodes need, between two bounds: alike where the pods are known exactly."""

    low: NodeLoads
    high: NodeLoads
    ungoverned: int = 0
    """F."""
    max_ips: int = DEFAULT_MAX_IPS


class FitQuestion(Struct, frozen=True, kw_only=True):
    """A subnet, and what is to come."""

    demand: KnownDemand
    capacity: int
    bounds: BatchBounds = BatchBounds()
    standing: BatchInForce | None = None
    """What is in force; None where the subnet is imagined, and then it is at rest."""
    pods: int = 0
    """New pods that need an address at once."""
    nodes: int = 0
    """New nodes."""

    def __post_init__(self) -> None:
        for name in ("pods", "nodes"):
            if getattr(self, name) < 0:
                raise InvalidPlan(f"{getattr(self, name)} more {name} is refused: it is a count, 0 or more")
        if self.capacity < 1:
            raise InvalidPlan(f"capacity {self.capacity} is refused: a subnet has at least 1 usable address")


class FitVerdict(StrEnum):
    """Whether the pods fit."""

    FITS = "fits"
    UNCERTAIN = "uncertain"
    SHORT = "does not fit"


class AddressBounds(Struct, frozen=True):
    """A number of addresses, or of pods, between two bounds."""

    least: int
    most: int


class BatchOutcome(Struct, frozen=True, kw_only=True):
    """What is in force once the pods are there, by how they are spread: the smallest and the largest batch."""

    least_batch: int
    most_batch: int
    may_be_exhausted: bool
    may_be_starved: bool
    is_certain: bool
    """Whether exhausted and starved are the same however the pods are spread."""


class FirstToGiveWay(Struct, frozen=True, kw_only=True):
    """With which of the new pods, spread evenly, what is in force changes for the first time, and to what."""

    pod: int
    """0 where it changes before any pod comes."""
    batch: int
    exhausted: bool
    starved: bool


class FitAnswer(Struct, frozen=True, kw_only=True):
    """Whether the pods fit, with the terms that decided."""

    verdict: FitVerdict
    needed: AddressBounds
    """Addresses that are needed at the least, when nodes keep nothing free."""
    missing: AddressBounds
    without_place: int
    """Pods that no node may have, because all nodes have as many as they may."""
    room: AddressBounds
    """How many new pods fit."""
    before: SettledBatch
    after: BatchOutcome
    first: FirstToGiveWay | None
    """None where all stays as it is."""


def known_demand(
    reading: SubnetReading, standing: BatchInForce, top: int, delays: BatchDelays | None = None
) -> KnownDemand:
    """What the nodes of a subnet need, by what they state.

    A node that cannot give back what it holds counts as if it had pods on that.
    """
    patience = delays or BatchDelays()
    low: Counter[int] = Counter()
    high: Counter[int] = Counter()
    for holding, count in reading.holdings.items():
        alone = SubnetDemand(
            holdings={holding: 1},
            ungoverned=0,
            in_force=standing.scaler or STARVED,
            top=top,
            exhausted=standing.exhausted,
            is_overdue=not 0 <= standing.age_seconds < patience.answer_seconds,
        )
        needs = alone.at(STARVED)
        low[needs.least - 1] += count
        high[needs.most - 1] += count
    maxima = (holding.stated.max_ips for holding in reading.holdings)
    return KnownDemand(
        low=low, high=high, ungoverned=reading.ungoverned, max_ips=min(maxima, default=DEFAULT_MAX_IPS)
    )


def decide_fit(question: FitQuestion) -> FitAnswer:
    """Whether the pods fit, and what gives way."""
    demand, capacity = question.demand, question.capacity
    least, most = (_needed(loads, question) for loads in (demand.low, demand.high))
    without_place = max(0, question.pods - _places(demand.high, question))
    if without_place or least > capacity:
        verdict = FitVerdict.SHORT
    else:
        verdict = FitVerdict.FITS if most <= capacity else FitVerdict.UNCERTAIN
    before = _settle(demand.high, question, question.standing)
    return FitAnswer(
        verdict=verdict,
        needed=AddressBounds(least, most),
        missing=AddressBounds(max(0, least - capacity), max(0, most - capacity)),
        without_place=without_place,
        room=AddressBounds(
            max(0, min(capacity - most + question.pods, _places(demand.high, question))),
            max(0, min(capacity - least + question.pods, _places(demand.low, question))),
        ),
        before=before,
        after=_outcome(question, before),
        first=_first_to_give_way(question, before),
    )


def _needed(loads: NodeLoads, question: FitQuestion) -> int:
    nodes = sum(loads.values()) + question.nodes
    return question.demand.ungoverned + nodes + pods_of(loads) + question.pods


def _places(loads: NodeLoads, question: FitQuestion) -> int:
    """How many more pods the nodes may have, new nodes among them."""
    most = question.demand.max_ips
    room = sum(max(0, most - pods) * count for pods, count in loads.items())
    return room + most * question.nodes


def _settle(loads: NodeLoads, question: FitQuestion, standing: BatchInForce | None) -> SettledBatch:
    demand = question.demand
    subnet = PlannedSubnet(
        bounds=question.bounds,
        capacity=question.capacity,
        max_ips=demand.max_ips,
        ungoverned=demand.ungoverned,
    )
    return settle(loads, subnet, standing)


def _with_nodes(loads: NodeLoads, nodes: int) -> NodeLoads:
    return Counter(loads) + Counter({0: nodes})


def _outcome(question: FitQuestion, before: SettledBatch) -> BatchOutcome:
    outcomes = []
    for loads in (question.demand.low, question.demand.high):
        there = _with_nodes(loads, question.nodes)
        spreads = (level(there, question.pods), pack(there, question.pods, question.demand.max_ips))
        outcomes += [_settle(each, question, before.standing) for each in spreads]
    return BatchOutcome(
        least_batch=min(each.scaler.batch for each in outcomes),
        most_batch=max(each.scaler.batch for each in outcomes),
        may_be_exhausted=any(each.exhausted for each in outcomes),
        may_be_starved=any(each.starved for each in outcomes),
        is_certain=len({(each.exhausted, each.starved) for each in outcomes}) == 1,
    )


def _first_to_give_way(question: FitQuestion, before: SettledBatch) -> FirstToGiveWay | None:
    """Found by halving: with more pods, never less gives way."""
    there = _with_nodes(question.demand.high, question.nodes)

    def after(pods: int) -> SettledBatch:
        return _settle(level(there, pods), question, before.standing)

    def gives_way(settled: SettledBatch) -> bool:
        return (
            settled.scaler.batch < before.scaler.batch
            or settled.exhausted > before.exhausted
            or settled.starved > before.starved
        )

    if not gives_way(after(question.pods)):
        return None
    pod = bisect_left(range(question.pods), x=True, key=lambda pods: gives_way(after(pods)))
    settled = after(pod)
    return FirstToGiveWay(
        pod=pod, batch=settled.scaler.batch, exhausted=settled.exhausted, starved=settled.starved
    )
