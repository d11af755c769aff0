"""Finds nodes that have network containers or a NodeNetworkConfig although they are deleted, at the start of a term.

A running controller sees the deletion of every Node. Between two controllers a Node can be deleted whose
NodeNetworkConfig is gone as well (somebody removed the finalizer): then nothing in the cluster names its containers any
more. The sweep is repeated when a new list of Nodes lacks one that was there, and when a NodeNetworkConfig appears that
names a Node which no watch showed.

Containers of another cluster, or of an unknown one, are skipped: that their Nodes are not here proves nothing
(`core.subnet.cluster_identity`). And if many nodes seem deleted, they wait for a second sweep
(`core.subnet.retirement_brake`).
"""

from podtide.allocator.pages import every_container
from podtide.controller.allocator_term import AllocatorTerm
from podtide.controller.nodes.node_reconciler import NodeReconciler
from podtide.controller.nodes.retirement import Retirement
from podtide.controller.term_context import TermContext
from podtide.core.subnet.cluster_identity import ContainerOwner, owner_of
from podtide.core.subnet.retirement_brake import LOOK_AGAIN_SECONDS
from podtide.resources.base import ObjectMeta
from podtide.resources.container_ids import node_uid
from podtide.resources.lease import Lease

HELD = "RetirementHeld"
"""The reason of the Event that says that retirements wait."""


class Sweep:
    """Goes through all containers of a cluster."""

    def __init__(
        self, context: TermContext, nodes: NodeReconciler, *, term: AllocatorTerm, retirement: Retirement
    ) -> None:
        self._context = context
        self._nodes = nodes
        self._term = term
        self._retirement = retirement
        self._told: frozenset[str] = frozenset()

    async def run(self, cluster: str) -> float | None:
        """Suspect every node of this cluster that is deleted, as far as the brake allows. Nothing is freed here."""
        self._term.check()
        known = await self._known(cluster)
        present = frozenset(node.metadata.uid for node in self._context.nodes.items())
        for uid in sorted(self._retirement.survey(frozenset(known), present)):
            self._nodes.suspect(known[uid], uid)
            self._context.node_queue.add(known[uid])
        held = self._retirement.held
        self._context.counts.held_retirements = len(held)
        if held and held != self._told:
            await self._tell(len(held), len(known), known[min(held)])
        self._told = held
        return self._retirement.look_again_in_seconds

    async def _known(self, cluster: str) -> dict[str, str]:
        """The names of all nodes that have something in the cluster or at the allocator, by the uid of the Node."""
        known = {
            uid: config.metadata.name for config in self._context.configs.items() if (uid := config.node_uid)
        }
        async for container in every_container(self._context.allocator, cluster):
            if owner_of(container.cluster_uid, self._term.uid) is ContainerOwner.THIS_CLUSTER:
                known[node_uid(container.id)] = container.node
        return known

    async def _tell(self, held: int, nodes: int, example: str) -> None:
        message = (
            f"{held} of {nodes} nodes of cluster {self._context.options.cluster}, such as {example}, do not exist, and this "
            f"controller did not watch their deletion. They are retired if they are still missing in {LOOK_AGAIN_SECONDS / 60:.0f} "
            "minutes; if they should exist, check that the controller's kubeconfig is this cluster's, and that no old backup was restored"
        )
        self._context.log.warning(
            "many nodes seem deleted: their retirement waits for a second check", nodes=held
        )
        place = ObjectMeta(name="podtide-controller", namespace="kube-system")
        await self._context.events.record(Lease(metadata=place), HELD, message, warning=True)
