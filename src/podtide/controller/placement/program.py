"""Placement as a part of the controller: what queues a node for its publisher, and what the other parts are told.

    Node: what it publishes, its taints, whether it is schedulable    → queue → NodePublisher.reconcile
    NodeNetworkConfig: demand
    the room in a subnet
    Node, slices of secondary networks                                → queue → NetworkPublisher.reconcile

Without `--placement` nothing is queued or written, and rooms are decided only to tell whether a subnet is full.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NoReturn

from podtide.allocator.subnets import SubnetDemandReport
from podtide.cluster.informer import Informer
from podtide.cluster.work_queue import WorkQueue
from podtide.cluster.workers import Workers
from podtide.controller.placement.coverage import NodeCoverage
from podtide.controller.placement.network_publisher import NetworkPublisher, NetworkRooms
from podtide.controller.placement.node_publisher import NodePublisher
from podtide.controller.placement.node_resources import (
    is_schedulable,
    is_tainted,
    networks_shown_by,
    shown_by,
)
from podtide.controller.placement.subnet_rooms import SubnetRooms
from podtide.controller.term_context import TermContext
from podtide.core.subnet.batch import SubnetDecision
from podtide.core.subnet.placement import SubnetRoom
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.runtime import Runtime

_WORKERS = 8


class PlacementController:
    """Publishes for all nodes while this replica leads."""

    def __init__(
        self,
        context: TermContext,
        nodes: Informer[Node],
        configs: Informer[NodeNetworkConfig],
        *,
        users: Callable[[str], Iterable[str]],
        networks: NetworkRooms,
    ) -> None:
        """`users` are the nodes that use a subnet."""
        self.coverage = NodeCoverage()
        self.is_enabled = context.options.placement
        self._queue = WorkQueue[str]()
        self._rooms = SubnetRooms(self.queue, users)
        self._publisher = NodePublisher(context, nodes, configs, self._rooms, coverage=self.coverage)
        self._network_queue = WorkQueue[str]()
        self._network_publisher = NetworkPublisher(context, nodes, networks)

    async def run(self, runtime: Runtime) -> NoReturn:
        """Publish until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    Workers(self._queue, runtime=runtime).run(self._publisher.reconcile, count=_WORKERS)
                )
                group.create_task(
                    Workers(self._network_queue, runtime=runtime).run(
                        self._network_publisher.reconcile, count=_WORKERS
                    )
                )
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        raise AssertionError("the queues ended without being stopped")

    def note_node(self, old: Node | None, new: Node | None) -> None:
        """Queue a Node that changed in what concerns schedulers: kubelets write the rest every few seconds."""
        if not self.is_enabled:
            return
        known = new or old
        assert known is not None
        if old is None or new is None or _what_schedulers_read(old) != _what_schedulers_read(new):
            self.queue(known.metadata.name)
        if old is None or new is None or networks_shown_by(old) != networks_shown_by(new):
            self.queue_networks(known.metadata.name)

    def queue(self, node: str) -> None:
        """Queue a node whose demand may have changed."""
        if self.is_enabled:
            self._queue.add(node)

    def queue_networks(self, node: str) -> None:
        """Queue a node whose slices of secondary networks may have changed."""
        if self.is_enabled:
            self._network_queue.add(node)

    def note_subnet(self, demand: SubnetDemandReport, decision: SubnetDecision) -> SubnetRoom:
        """Take in what was read and decided of a subnet. Returns what of it decides the room of its nodes."""
        return self._rooms.note_subnet(demand, decision)

    def forget_subnet(self, name: str) -> None:
        """Forget a subnet that no node uses any more."""
        self._rooms.forget(name)


def _what_schedulers_read(node: Node) -> tuple[object, ...]:
    return shown_by(node), node.status.allocatable.get("pods"), is_tainted(node), is_schedulable(node)
