"""The subnets that nodes of this cluster use, when one is reconciled beside its poll, and which nodes are owed addresses.

Each is reconciled every `poll`. Beside that, at once: when a first node uses it, when a node got less than it asked for
(design D5: by the same inequality), and, if a node is owed addresses or no pod can be placed for want of one, when
addresses or claims in it ended.

The allocator knows the claims of all clusters and the order in which they are served, but it cannot call the
controller. So the controller remembers which of its nodes wait, and asks when addresses came free. Of the answer it
takes the nodes whose turn reaches into what is free; a request for the others would only be refused.
"""

from collections import defaultdict
from collections.abc import Iterable

from podtide.allocator.subnets import Debt
from podtide.cluster.work_queue import WorkQueue
from podtide.core.subnet.scaler import SubnetScaler


class OwedNodes:
    """Nodes of this cluster that are owed addresses, by subnet."""

    def __init__(self) -> None:
        self._owed: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def __len__(self) -> int:
        return sum(map(len, self._owed.values()))

    def note(self, subnet: str, node: str, owed: int) -> bool:
        """Note how many addresses the node is owed now. Returns whether that is more than before."""
        before = self._owed[subnet].pop(node, 0)
        if owed:
            self._owed[subnet][node] = owed
        return owed > before

    def forget(self, node: str) -> None:
        """Forget a node that was deleted."""
        for nodes in self._owed.values():
            nodes.pop(node, None)

    def in_subnet(self, subnet: str) -> bool:
        """Whether any node is owed addresses of the subnet."""
        return bool(self._owed[subnet])


def in_turn(debts: Iterable[Debt], free: int, cluster: str) -> list[str]:
    """The nodes of this cluster that are next in the order, with so many addresses free."""
    nodes = []
    for debt in debts:
        if free <= 0:
            break
        free -= debt.owed
        if debt.cluster == cluster:
            nodes.append(debt.node)
    return nodes


class KnownSubnets:
    """What is known of subnets between two reconciles."""

    def __init__(self, queue: WorkQueue[str], always: Iterable[str]) -> None:
        self._queue = queue
        self._always = frozenset(always)
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._used_by: dict[str, frozenset[str]] = {}
        self._owed = OwedNodes()
        self._in_turn: set[str] = set()
        self._in_force: dict[str, SubnetScaler] = {}
        self._is_short: dict[str, bool] = {}
        for name in sorted(self._always):
            queue.add(name)

    @property
    def owed_nodes(self) -> int:
        """How many nodes are owed addresses."""
        return len(self._owed)

    def is_used(self, name: str) -> bool:
        """Whether the subnet is one of the defaults, or a node uses it."""
        return name in self._always or bool(self._users.get(name))

    def users(self, name: str) -> list[str]:
        """The nodes that use a subnet."""
        return sorted(self._users.get(name, ()))

    def in_force(self, name: str) -> SubnetScaler | None:
        """The scaler that was decided for the subnet; None until it was reconciled."""
        return self._in_force.get(name)

    def use(self, node: str, names: Iterable[str]) -> None:
        """Note which subnets the node uses."""
        now, before = frozenset(names), self._used_by.get(node, frozenset())
        if now == before:
            return
        self._used_by[node] = now
        for name in before - now:
            self._users[name].discard(node)
        for name in sorted(now - before):
            if not self.is_used(name):
                self._queue.add(name)
            self._users[name].add(node)

    def forget_node(self, node: str) -> None:
        """Forget a node that was deleted, and its claims."""
        for name in self._used_by.get(node, ()):
            self._queue_if_owed(name)
        self.use(node, ())
        self._used_by.pop(node, None)
        self._owed.forget(node)
        self._in_turn.discard(node)

    def note_answer(self, name: str, node: str, *, owed: int, gave_back: bool) -> None:
        """Note the allocator's answer to a node's wish, and queue the subnet if it fell short or freed something."""
        if self._owed.note(name, node, owed):
            self._queue.add(name)
        elif gave_back:
            self._queue_if_owed(name)

    def give_turn(self, node: str) -> None:
        """Note that addresses are free for this node, which is owed some."""
        self._in_turn.add(node)

    def take_turn(self, node: str) -> bool:
        """Whether it is the node's turn. The turn ends with this call: the caller sends the wish."""
        had = node in self._in_turn
        self._in_turn.discard(node)
        return had

    def note_reconcile(self, name: str, in_force: SubnetScaler, *, is_short: bool) -> None:
        """Note the result of a reconcile, and whether nodes or pods wait for addresses of the subnet."""
        self._in_force[name] = in_force
        self._is_short[name] = is_short

    def forget(self, name: str) -> None:
        """Forget a subnet that no node uses any more."""
        self._in_force.pop(name, None)
        self._is_short.pop(name, None)

    def _queue_if_owed(self, name: str) -> None:
        if self._owed.in_subnet(name) or self._is_short.get(name, False):
            self._queue.add(name)
