"""Nodes that another program serves, and whether anything may be granted beside them.

A NodeNetworkConfig as DNC wrote it for Azure CNS (`resources.foreign_config`) lists addresses that its node hands out now,
and of which the allocator knows nothing before `podtide migrate cns --reserve`. Until all of them are reserved, whatever is
granted could be one of them. So nothing is granted to any node of the cluster meanwhile: not to nodes that join, and not to
those that were handed over.
"""

from podtide.controller.events import EventRecorder
from podtide.resources.foreign_config import is_foreign, is_reserved
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.logging import Logger

LEFT_ALONE = "ServedByAnotherProgram"
"""The reason of the Event that a NodeNetworkConfig is left alone."""


class ForeignConfigs:
    """Follows which NodeNetworkConfigs are another program's, during one term."""

    def __init__(self, events: EventRecorder, log: Logger) -> None:
        self._events = events
        self._log = log
        self._unreserved: set[str] = set()
        self._told: dict[str, str] = {}

    @property
    def unreserved(self) -> frozenset[str]:
        """The nodes that have addresses of which the allocator does not know: until there are none, nothing is granted."""
        return frozenset(self._unreserved)

    def note(self, name: str, config: NodeNetworkConfig | None) -> bool:
        """Note how a node's NodeNetworkConfig is now. Returns whether grants may go on by that, and could not before."""
        was_closed = bool(self._unreserved)
        if config is not None and is_foreign(config) and not is_reserved(config):
            self._unreserved.add(name)
        else:
            self._unreserved.discard(name)
        return was_closed and not self._unreserved

    async def leave_alone(self, config: NodeNetworkConfig) -> None:
        """Tell, once for each state, that a NodeNetworkConfig is left alone, and what to do about it."""
        name = config.metadata.name
        if is_reserved(config):
            message = (
                f"the network containers of NodeNetworkConfig {name} are another program's, and their addresses are reserved: it "
                f"is left alone until `podtide migrate cns --hand-over --node {name}`"
            )
        else:
            message = (
                f"the network containers of NodeNetworkConfig {name} are another program's, and their addresses are not reserved "
                "at the allocator, so nothing is granted to any node of this cluster: run `podtide migrate cns --reserve`; if no "
                "other program serves this cluster any more and no pod of the node has an address, delete the object"
            )
        if self._told.get(name) != message:
            self._told[name] = message
            self._log.warning("a NodeNetworkConfig is left alone", node=name, reason=message)
            await self._events.record(config, LEFT_ALONE, message, warning=True)
