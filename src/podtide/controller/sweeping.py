"""Network containers at the allocator whose nodes are gone, found once at the start of a term.

While a controller runs it hears of every Node that goes. Between two controllers a Node can go whose NodeNetworkConfig
is gone as well (somebody took the finalizer off): then nothing in the cluster tells of its containers any more.
"""

from podtide.cluster.informer import Informer
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.nodes import Nodes
from podtide.controller.placing import node_uid
from podtide.controller.surroundings import Surroundings
from podtide.resources.base import Key
from podtide.resources.node import Node


class Sweep:
    """Looks through all containers of a cluster."""

    def __init__(
        self, around: Surroundings, copies: Informer[Node], nodes: Nodes, queue: WorkQueue[str]
    ) -> None:
        self._allocator = around.allocator
        self._copies = copies
        self._nodes = nodes
        self._queue = queue

    async def run(self, cluster: str) -> None:
        """Suspect every node that has containers and seems not to be there. Nothing is freed here."""
        more, is_last = "", False
        while not is_last:
            page = await self._allocator.list_containers(cluster=cluster, more=more)
            for container in page.items:
                uid = node_uid(container.id)
                node = self._copies.get(Key("", container.node))
                if node is None or node.metadata.uid != uid:
                    self._nodes.suspect(container.node, uid)
                    self._queue.add(container.node)
            more, is_last = page.more, not page.more
