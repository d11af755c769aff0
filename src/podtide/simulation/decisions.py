"""Decisions of a cluster's programs, read from the trace: what agents request, why, and what controllers conclude."""

from collections.abc import Iterator

from podtide.resources.event import Event
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.full_names import full_name
from podtide.simulation.trace import ClusterWrite, Entry, PluginCall
from podtide.simulation.world.world import World


class Decisions:
    """Returns each decision once, as a sentence."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told = 0
        self._asked: dict[str, int] = {}
        """Each node's last request."""

    def news(self) -> Iterator[tuple[str, str]]:
        """The decisions since the last call, each with its node, whose name is then not in the sentence."""
        entries = self._world.trace.entries
        while self._told < len(entries):
            entry = entries[self._told]
            self._told += 1
            words, who = self._words(entry)
            if words:
                yield words, who

    def _words(self, entry: Entry) -> tuple[str, str]:
        if isinstance(entry, PluginCall):
            return str(entry) if not entry.ok and entry.cluster == self._world.name else "", ""
        if not isinstance(entry, ClusterWrite) or entry.cluster != self._world.name:
            return "", ""
        if isinstance(entry.item, Event):
            about, event = entry.item.involved_object, f"{entry.item.reason}: {entry.item.message}"
            if about.kind == NodeNetworkConfig.api.kind:
                return f"is told {event}", self._called(about.name)
            return f"{about.kind} {self._called(about.name)}: {event}", ""
        if isinstance(entry.item, NodeNetworkConfig) and entry.verb == "apply":
            return self._request(entry.item), self._called(entry.item.metadata.name)
        return "", ""

    def _request(self, config: NodeNetworkConfig) -> str:
        name, asked = config.metadata.name, config.spec.requested_ip_count
        before, self._asked[name] = self._asked.get(name, 0), asked
        named = len(config.spec.ips_not_in_use)
        gives_back = f", gives back {named}" if named else ""
        if asked == before:
            return f"asks for {asked}{gives_back}" if named else ""
        return f"asks for {asked} after {before}{gives_back}{self._reason(name, asked)}"

    def _called(self, name: str) -> str:
        return full_name(self._world.name, name)

    def _reason(self, node: str, asked: int) -> str:
        """The agent's reason, unless it has computed another request meanwhile."""
        machine = self._world.machines.get(node)
        target = machine.agent.requester.target if machine and machine.agent else None
        return f": {target.decided}" if target and target.request == asked else ""
