"""Decisions as they are made in a cluster, read from the trace: what agents ask for, why, and what controllers conclude."""

from collections.abc import Iterator

from podtide.resources.event import Event
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.full_names import full_name
from podtide.simulation.trace import ClusterWrite, Entry, PluginCall
from podtide.simulation.world import World


class Decisions:
    """Tells each decision once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told = 0
        self._asked: dict[str, int] = {}
        """What each node asked for last."""

    def news(self) -> Iterator[str]:
        """What was decided since the last time, in sentences."""
        entries = self._world.trace.entries
        while self._told < len(entries):
            entry = entries[self._told]
            self._told += 1
            if words := self._words(entry):
                yield words

    def _words(self, entry: Entry) -> str:
        if isinstance(entry, PluginCall):
            return str(entry) if not entry.ok and entry.cluster == self._world.name else ""
        if not isinstance(entry, ClusterWrite) or entry.cluster != self._world.name:
            return ""
        if isinstance(entry.item, Event):
            about = entry.item.involved_object
            return f"{about.kind} {self._called(about.name)}: {entry.item.reason}: {entry.item.message}"
        if isinstance(entry.item, NodeNetworkConfig) and entry.verb == "apply":
            return self._request(entry.item)
        return ""

    def _request(self, config: NodeNetworkConfig) -> str:
        name, asked = config.metadata.name, config.spec.requested_ip_count
        before, self._asked[name] = self._asked.get(name, 0), asked
        named = len(config.spec.ips_not_in_use)
        gives_back = f", gives back {named}" if named else ""
        called = self._called(name)
        if asked == before:
            return f"{called} asks for {asked}{gives_back}" if named else ""
        return f"{called} asks for {asked} after {before}{gives_back}{self._reason(name, asked)}"

    def _called(self, name: str) -> str:
        return full_name(self._world.name, name)

    def _reason(self, node: str, asked: int) -> str:
        """The agent's own words, unless it has come to think of another number meanwhile."""
        machine = self._world.machines.get(node)
        target = machine.agent.requester.target if machine and machine.agent else None
        return f": {target.decided}" if target and target.request == asked else ""
