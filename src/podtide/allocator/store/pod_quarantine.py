"""What living pods have and no report tells of, in a store that went back: in quarantine under the name of their node.

A Node was removed while its machine lives on, and its quarantine was lost with the database; no NodeNetworkConfig tells of it
any more. The pods do: they show their addresses. As for every removed Node, the quarantine ends by the word of the
cluster's controller, when no living pod bound to that name shows them.
"""

from uuid import UUID, uuid5

from msgspec import Struct

from podtide.allocator.store.container_row import ContainerRow
from podtide.allocator.store.reported_addresses import Masks, add, take_reported
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.terms import ShownAddresses
from podtide.core.errors import InvalidInput

_OF_NODE = """SELECT id FROM containers WHERE subnet = $1 AND cluster = $2 AND node = $3
    UNION SELECT container FROM quarantines WHERE subnet = $1 AND cluster = $2 AND node = $3"""
_NAMESPACE = UUID("a6f2b0a3-5f0e-4d62-9d25-52ed0b1f6c8e")


class KeepForPods(Struct, frozen=True):
    """Keep from everybody what pods show to have."""

    shown: ShownAddresses

    @property
    def container(self) -> str:
        """What stands in place of the removed container, of which nothing is known: the same for the same report."""
        shown = self.shown
        return str(uuid5(_NAMESPACE, f"{shown.cluster}/{shown.network}/{shown.subnet}/{shown.node}"))

    @property
    def cluster(self) -> str:
        """Whose pods they are."""
        return self.shown.cluster

    def carry_out(self, transaction: SubnetTransaction) -> Script[int]:
        """Take what no report has confirmed as somebody's, and what nothing is known of under that name."""
        shown, recovery = self.shown, transaction.context.recovery
        if not recovery:
            return 0
        if shown.recovery != recovery:
            raise InvalidInput(
                f"what pods of node {shown.node} show was reported for recovery {shown.recovery}, and {recovery} goes on: "
                "report anew"
            )
        transaction.context.refuse_another_cluster(shown.cluster, shown.cluster_uid)
        masks: Masks = {}
        for ip in shown.addresses:
            if (place := transaction.subnet.layout.place(ip)) is not None:
                add(masks, place.chunk, 1 << place.position)
        row = ContainerRow(self.container, shown.cluster, None, shown.node, cluster_uid=shown.cluster_uid)
        of_node = yield from _of_node(shown, transaction)
        taken = yield from take_reported(masks, transaction, row, _nothing_is_later, but_for=of_node)
        yield from transaction.quarantine(taken, row)
        return sum(mask.bit_count() for mask in taken.values())


def _of_node(shown: ShownAddresses, transaction: SubnetTransaction) -> Script[frozenset[str]]:
    """The containers of the node's name, those that left something in quarantine too."""
    rows = yield Query(_OF_NODE, (transaction.subnet.id, shown.cluster, shown.node))
    unwritten = {
        id_
        for id_, row in transaction.containers.items()
        if (row.cluster, row.node) == (shown.cluster, shown.node)
    }
    return frozenset({id_ for (id_,) in rows} | unwritten)


def _nothing_is_later(_version: int, _chunk: int) -> int:
    """Pods do not show when their addresses were granted: what a report confirmed stays where it is."""
    return 0
