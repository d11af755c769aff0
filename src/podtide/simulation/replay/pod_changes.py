"""Which pod comes and goes when, and on which node, by a trace and a seed.

A trace has counts and no pods: between two rows only their difference comes or goes. By default that is spread over the
step before the later row, at moments drawn from the seed; at once, it happens at the row's time. Where a trace does not
say on which node, a new pod goes to the node with fewer pods of two that are drawn, which spreads pods about as evenly as a
scheduler does, and a pod that goes is drawn from all there are.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from msgspec import Struct

from podtide.simulation.replay.pod_trace import InvalidTrace, PodTrace


class PodChange(Struct, frozen=True, order=True):
    """A pod that comes to a node (+1) or goes (-1), in seconds after the beginning of the trace."""

    at: float
    node: str
    change: int


class PodPlacement:
    """The pods of each node, from the beginning of a trace to its end."""

    def __init__(self, trace: PodTrace, nodes: Sequence[str], most: int, chance: Random) -> None:
        self._trace = trace
        self._nodes = nodes
        self._most = most
        """The most pods of a node."""
        self._chance = chance
        self._is_by_node = tuple(nodes) == trace.columns
        self.pods = dict.fromkeys(nodes, 0)
        """How many each node has at the moment."""
        check_room(trace, nodes, most)
        for column, count in enumerate(trace.counts[0]):
            for _ in range(count):
                self._change(column, 1)

    def changes(self, *, at_once: bool) -> Iterator[PodChange]:
        """What changes after the beginning, in order."""
        trace = self._trace
        rows = zip(trace.times, trace.counts, strict=True)
        for (before, counts), (at, wanted) in pairwise(rows):
            window = 0.0 if at_once else min(trace.step_seconds, at - before)
            moves = [
                (at - window * self._chance.random(), column, 1 if then > now else -1)
                for column, (now, then) in enumerate(zip(counts, wanted, strict=True))
                for _ in range(abs(then - now))
            ]
            for moment, column, change in sorted(moves):
                yield PodChange(moment - trace.times[0], self._change(column, change), change)

    def _change(self, column: int, change: int) -> str:
        node = self._nodes[column] if self._is_by_node else self._come() if change > 0 else self._go()
        self.pods[node] += change
        return node

    def _come(self) -> str:
        node = min((self._chance.choice(self._nodes) for _ in range(2)), key=self.pods.__getitem__)
        return node if self.pods[node] < self._most else min(self._nodes, key=self.pods.__getitem__)

    def _go(self) -> str:
        (node,) = self._chance.choices(self._nodes, weights=list(self.pods.values()))
        return node


def check_room(trace: PodTrace, nodes: Sequence[str], most: int) -> None:
    """Refuse a trace with more pods than the nodes have room for, with so many each."""
    if tuple(nodes) == trace.columns:
        for place, node in enumerate(nodes):
            if (peak := max(row[place] for row in trace.counts)) > most:
                raise InvalidTrace(
                    f"node {node} has up to {peak} pods, and a node holds at most {most}: correct its column, or give a smaller --scale"
                )
    elif trace.peak > most * len(nodes):
        raise InvalidTrace(
            f"the trace has up to {trace.peak} pods, more than {len(nodes)} nodes hold with {most} each: "
            f"give --nodes {-(-trace.peak // most)} or more, or a smaller --scale"
        )
