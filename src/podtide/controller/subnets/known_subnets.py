"""The subnets that nodes of this cluster use, and the occasions to look at one.

Each is looked at every `poll`. Beside that, at once: when it comes into use, when a node got less than it asked for
(DESIGN.md "Exhaustion": by the same inequality), and, if somebody is owed, when addresses or claims in it ended.
"""

from collections import defaultdict
from collections.abc import Iterable

from podtide.cluster.work_queue import WorkQueue
from podtide.controller.subnets.owed_nodes import OwedNodes
from podtide.core.subnet.scaler import SubnetScaler


class KnownSubnets:
    """What is known of subnets between two looks at them."""

    def __init__(self, looks: WorkQueue[str], always: Iterable[str]) -> None:
        self._looks = looks
        self._always = frozenset(always)
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._used_by: dict[str, frozenset[str]] = {}
        self._owed = OwedNodes()
        self._in_turn: set[str] = set()
        self._in_force: dict[str, SubnetScaler] = {}
        self._owed_to_anybody: dict[str, bool] = {}
        for name in sorted(self._always):
            looks.add(name)

    @property
    def owed_nodes(self) -> int:
        """How many nodes are owed addresses."""
        return len(self._owed)

    def is_used(self, name: str) -> bool:
        """Whether the subnet is one of the defaults, or some node's."""
        return name in self._always or bool(self._users.get(name))

    def users(self, name: str) -> list[str]:
        """The nodes that use a subnet."""
        return sorted(self._users.get(name, ()))

    def in_force(self, name: str) -> SubnetScaler | None:
        """What was decided for the subnet; None until it was looked at."""
        return self._in_force.get(name)

    def use(self, node: str, names: Iterable[str]) -> None:
        """These are the subnets the node uses."""
        now, before = frozenset(names), self._used_by.get(node, frozenset())
        if now == before:
            return
        self._used_by[node] = now
        for name in before - now:
            self._users[name].discard(node)
        for name in sorted(now - before):
            if not self.is_used(name):
                self._looks.add(name)
            self._users[name].add(node)

    def forget_node(self, node: str) -> None:
        """The node is gone, and its claims are."""
        for name in self._used_by.get(node, ()):
            self._look_if_owed(name)
        self.use(node, ())
        self._used_by.pop(node, None)
        self._owed.forget(node)
        self._in_turn.discard(node)

    def note_answer(self, name: str, node: str, *, owed: int, gave_back: bool) -> None:
        """The allocator answered a node's wish."""
        if self._owed.note(name, node, owed):
            self._looks.add(name)
        elif gave_back:
            self._look_if_owed(name)

    def give_turn(self, node: str) -> None:
        """Addresses are free for this node, which is owed."""
        self._in_turn.add(node)

    def take_turn(self, node: str) -> bool:
        """Whether addresses are free for this node. Asked once, it asks the allocator."""
        had = node in self._in_turn
        self._in_turn.discard(node)
        return had

    def note_look(self, name: str, in_force: SubnetScaler, *, anybody_owed: bool) -> None:
        """The subnet was looked at."""
        self._in_force[name] = in_force
        self._owed_to_anybody[name] = anybody_owed

    def forget(self, name: str) -> None:
        """No node uses the subnet any more."""
        self._in_force.pop(name, None)
        self._owed_to_anybody.pop(name, None)

    def _look_if_owed(self, name: str) -> None:
        if self._owed.in_subnet(name) or self._owed_to_anybody.get(name, False):
            self._looks.add(name)
