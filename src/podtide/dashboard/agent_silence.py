"""Which agents have not answered. No I/O, and no look at those that have.

An agent shows that it is there by what it writes: its first request, and a new statement when the subnet's batch went down.
So nodes are kept by the batch they state: when one is put in force, those above it are the ones that owe an answer.
"""

from collections import defaultdict
from collections.abc import Iterable

from podtide.dashboard.records import MOST_SILENT, AgentsHealth, SilentAgent
from podtide.resources.timestamps import to_time

ANSWER_SECONDS = 60.0
"""How long an agent may take: as long as the request controller waits before it changes the batch again."""


class AgentSilence:
    """The agents of all nodes with a network container."""

    def __init__(self) -> None:
        self._stated: dict[str, defaultdict[int, dict[str, None]]] = {}
        """Nodes, by subnet and by the batch they state."""
        self._places: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By node, where it is in these."""
        self._mute: dict[str, float] = {}
        """Since when nodes have a container whose agent has asked for nothing."""
        self._in_force: dict[str, tuple[int, float]] = {}
        """By subnet, the batch and since when it is known."""
        self._agents: set[str] = set()

    def forget(self, node: str) -> None:
        """A node is gone, or has no container."""
        self._agents.discard(node)
        self._mute.pop(node, None)
        batch, subnets = self._places.pop(node, (0, ()))
        for subnet in subnets:
            alike = self._stated[subnet][batch]
            alike.pop(node, None)
            if not alike:
                del self._stated[subnet][batch]
            if not self._stated[subnet]:
                del self._stated[subnet]

    def note(
        self, node: str, subnets: Iterable[str], batch: int | None, *, has_asked: bool, now: float
    ) -> None:
        """A node with containers in these subnets states this batch, or none; `now` is of the wall clock."""
        muted = self._mute.get(node, now)
        self.forget(node)
        self._agents.add(node)
        if batch is not None:
            places = tuple(dict.fromkeys(subnets))
            self._places[node] = batch, places
            for subnet in places:
                self._stated.setdefault(subnet, defaultdict(dict))[batch][node] = None
        elif not has_asked:
            self._mute[node] = muted

    def put_in_force(self, subnet: str, batch: int | None, now: float) -> None:
        """A subnet's batch, or that it has none."""
        if batch is None:
            self._in_force.pop(subnet, None)
        elif self._in_force.get(subnet, (None, now))[0] != batch:
            self._in_force[subnet] = batch, now

    def health(self, now: float) -> AgentsHealth:
        """The agents that owe an answer for longer than they may take."""
        found: dict[str, SilentAgent] = {}
        count = set[str]()
        for node, since in self._mute.items():
            if now - since >= ANSWER_SECONDS:
                count.add(node)
                _name(found, node, "its agent has asked for nothing: see that it runs", since)
        for subnet, (batch, since) in self._in_force.items():
            if now - since < ANSWER_SECONDS:
                continue
            for stated, nodes in self._stated.get(subnet, {}).items():
                if stated <= batch:
                    continue
                count.update(nodes)
                for node in list(nodes)[:MOST_SILENT]:
                    words = f"its agent has not answered batch {batch} of subnet {subnet} and states {stated}: see that it runs"
                    _name(found, node, words, since)
        silent = tuple(found[node] for node in sorted(found))
        return AgentsHealth(total=len(self._agents), silent=silent, silent_count=len(count))


def _name(found: dict[str, SilentAgent], node: str, message: str, since: float) -> None:
    if len(found) < MOST_SILENT:
        found.setdefault(node, SilentAgent(node=node, message=message, since=to_time(since)))
