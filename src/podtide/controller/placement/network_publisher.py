"""Writes for how many pods Nodes have addresses of secondary networks: one extended resource for each network.

These numbers have nothing to do with subnets: they follow from a node's slices, and change when these or the definition of
a network do. A node has slices whether or not its agent has a pool for the primary network, so they are published for
every Node, beside what `node_publisher` writes.
"""

from collections.abc import Callable, Mapping

from podtide.cluster.informer import Informer
from podtide.controller.placement.node_resources import networks_shown_by, resource_changes
from podtide.controller.term_context import TermContext
from podtide.core.subnet.placement import LOWER_EVERY_SECONDS
from podtide.resources.base import Key
from podtide.resources.node import Node

NetworkRooms = Callable[[str], Mapping[str, int] | None]
"""By node: for how many pods it has addresses of each secondary network, by resource; None while that is not known."""


class NetworkPublisher:
    """Publishes for nodes by name, one at a time for each."""

    def __init__(self, context: TermContext, nodes: Informer[Node], rooms: NetworkRooms) -> None:
        self._context = context
        self._nodes = nodes
        self._rooms = rooms
        self._lowered_at: dict[str, float] = {}

    async def reconcile(self, name: str) -> float | None:
        """Publish for a node. Returns after how many seconds a lower number may be written, if there is one."""
        node, wanted = self._nodes.get(Key("", name)), self._rooms(name)
        if node is None or wanted is None:
            self._lowered_at.pop(name, None)
            return None
        shown = networks_shown_by(node)
        lowered = {each: number for each, number in wanted.items() if number < (shown.get(each) or 0)}
        changed: dict[str, int | None] = {
            each: number
            for each, number in wanted.items()
            if number != shown.get(each) and each not in lowered
        } | dict.fromkeys(each for each in shown if each not in wanted)
        now = self._context.clock.monotonic()
        wait_seconds = self._lowered_at.get(name, now - LOWER_EVERY_SECONDS) + LOWER_EVERY_SECONDS - now
        waits = bool(lowered) and wait_seconds > 0
        if not waits:
            changed |= lowered
        if changed:
            await self._context.writes.patch(node, resource_changes(changed), status=True)
        if lowered and not waits:
            self._lowered_at[name] = now
        return wait_seconds if waits else None
