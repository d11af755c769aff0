"""The pods that a cluster's nodes have, at rest and at worst, by how many nodes are alike.

A plan is made for nodes that differ in nothing but their number of pods, so it counts them: all sums cost the same for
fifty nodes as for five thousand. What is to happen to a cluster happens in this order, and in the end all of it is so:

    growth      nodes are added, in the same mix as there is
    burst       every node has so many times its pods; the subnet comes to rest
    lost zones  the fullest nodes are gone, and their pods are on the others, the emptiest first
    surge       an upgrade replaces the fullest nodes that are left, and their pods are on as many new ones

A node that is gone keeps its addresses: those of a Node that was removed are in quarantine for a while, and those of one
whose machine does not answer are its own until it is removed. So nodes that are gone are counted beside those that live.
The upgrade counts with one round: nodes that it replaced before are out of quarantine.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidPlan
from podtide.core.exact import text
from podtide.core.plan.count_or_percent import CountOrPercent

NodeLoads = Mapping[int, int]
"""How many nodes have so many pods: nodes by pods."""

PodMix = Mapping[int, Fraction | int]
"""Which part of the nodes has so many pods: any weights by pods."""


class WorstCase(Struct, frozen=True, kw_only=True):
    """What a cluster is to survive."""

    growth: CountOrPercent = CountOrPercent()
    burst: Fraction = Fraction(1)
    zones: int = 1
    lost_zones: int = 0
    surge: CountOrPercent = CountOrPercent()

    def __post_init__(self) -> None:
        if self.burst < 1:
            raise InvalidPlan(
                f"a burst of {text(self.burst)} is refused: it is how many times the pods there are, 1 or more, such as 2"
            )
        if self.zones < 1:
            raise InvalidPlan(f"{self.zones} zones is refused: a cluster has at least 1")
        if not 0 <= self.lost_zones < self.zones:
            raise InvalidPlan(
                f"{self.lost_zones} lost zones of {self.zones} is refused: give a number from 0 to {self.zones - 1}, so that "
                "a zone is left for the pods"
            )


class PlannedLoad(Struct, frozen=True, kw_only=True):
    """The nodes that live, and those that are gone and keep their addresses."""

    live: NodeLoads
    gone: NodeLoads = {}
    before: NodeLoads | None = None
    """All nodes before any was gone: by the batch that is in force for these, those that are gone hold what they hold."""

    @property
    def nodes(self) -> int:
        """How many nodes live."""
        return sum(self.live.values())

    @property
    def pods(self) -> int:
        """How many pods need an address."""
        return pods_of(self.live)


def deal(mix: PodMix, nodes: int) -> NodeLoads:
    """So many nodes in this mix. Where they do not come out even, the larger number of pods is taken: a plan must suffice."""
    total, reached, dealt = sum(mix.values()), Fraction(0), 0
    loads: Counter[int] = Counter()
    for pods in sorted(mix, reverse=True):
        reached += mix[pods]
        up_to = ceil(nodes * reached / total)
        loads[pods] = up_to - dealt
        dealt = up_to
    return +loads


def worst_of(loads: NodeLoads, case: WorstCase) -> PlannedLoad:
    """The load when all of it happens at once."""
    nodes = sum(loads.values())
    grown = deal(loads, nodes + case.growth.of(nodes))
    before: NodeLoads = _sum((ceil(pods * case.burst), count) for pods, count in grown.items())
    live = before
    gone: Counter[int] = Counter()
    if case.lost_zones:
        total = sum(live.values())
        lost = ceil(Fraction(total * case.lost_zones, case.zones))
        if lost >= total:
            raise InvalidPlan(
                f"{case.lost_zones} lost zones of {case.zones} is refused: of {total} nodes none would be left for the pods"
            )
        fullest, rest = split_fullest(live, lost)
        gone.update(fullest)
        live = level(rest, pods_of(fullest))
    replaced, _ = split_fullest(live, case.surge.of(sum(live.values())))
    gone.update(replaced)
    return PlannedLoad(live=live, gone=gone, before=before)


def pods_of(loads: NodeLoads) -> int:
    """How many pods all nodes have."""
    return sum(pods * count for pods, count in loads.items())


def split_fullest(loads: NodeLoads, nodes: int) -> tuple[NodeLoads, NodeLoads]:
    """So many of the fullest nodes, as far as there are as many, and the others."""
    fullest: Counter[int] = Counter()
    for pods in sorted(loads, reverse=True):
        fullest[pods] = min(loads[pods], nodes)
        nodes -= fullest[pods]
    return +fullest, Counter(loads) - fullest


def level(loads: NodeLoads, pods: int) -> NodeLoads:
    """The loads after so many more pods went to the emptiest nodes, each to the emptiest at its time."""
    ascending = sorted(height for height, count in loads.items() if count)
    lowest = 0
    for index, height in enumerate(ascending):
        lowest += loads[height]
        following = ascending[index + 1 :]
        room = lowest * (following[0] - height) if following else pods + 1
        if room > pods:
            higher, rest = divmod(pods, lowest)
            risen = [(height + higher, lowest - rest), (height + higher + 1, rest)]
            return _sum([*risen, *((each, loads[each]) for each in following)])
        pods -= room
    return {}


def pack(loads: NodeLoads, pods: int, most: int) -> NodeLoads:
    """The loads after so many more pods filled the fullest nodes first, none beyond `most`."""
    return _sum(_packed(loads, pods, most))


def _packed(loads: NodeLoads, pods: int, most: int) -> Iterator[tuple[int, int]]:
    for height in sorted(loads, reverse=True):
        room, count = max(0, most - height), loads[height]
        full = min(count, pods // room) if room else 0
        pods -= full * room
        if full < count and room and pods:
            yield height + pods, 1
            count -= 1
            pods = 0
        yield height + room, full
        yield height, count - full


def _sum(pairs: Iterable[tuple[int, int]]) -> NodeLoads:
    """Counts of nodes by pods, without those of 0 nodes."""
    loads: Counter[int] = Counter()
    for pods, count in pairs:
        loads[pods] += count
    return +loads
