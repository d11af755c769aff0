"""Who is owed addresses: remembered here, ordered by the allocator.

The allocator knows everybody's claim and the order they are served in. What it cannot do is call: so the controller
remembers which of its nodes wait, and asks when addresses came free. Of the answer it takes those whose turn reaches
into what is free; asking for the others would only be refused.
"""

from collections import defaultdict
from collections.abc import Iterable

from podtide.allocator.port import Debt


class OwedNodes:
    """Nodes of this cluster that are owed, by subnet."""

    def __init__(self) -> None:
        self._owed: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def __len__(self) -> int:
        return sum(map(len, self._owed.values()))

    def note(self, subnet: str, node: str, owed: int) -> bool:
        """The node is owed this many now; whether that is more than before."""
        before = self._owed[subnet].pop(node, 0)
        if owed:
            self._owed[subnet][node] = owed
        return owed > before

    def forget(self, node: str) -> None:
        """The node is gone."""
        for nodes in self._owed.values():
            nodes.pop(node, None)

    def in_subnet(self, subnet: str) -> bool:
        """Whether any node is owed addresses of the subnet."""
        return bool(self._owed[subnet])


def in_turn(debts: Iterable[Debt], free: int, cluster: str) -> list[str]:
    """The nodes of a cluster whose turn it is, with so many addresses free, in their order."""
    nodes = []
    for debt in debts:
        if free <= 0:
            break
        free -= debt.owed
        if debt.cluster == cluster:
            nodes.append(debt.node)
    return nodes
