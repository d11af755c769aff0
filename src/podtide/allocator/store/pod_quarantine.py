"""Addresses that living pods show and no report has, in a store that went back: quarantined under their node's name.

A Node was removed while its machine runs on, and its quarantine was lost with the database. No NodeNetworkConfig shows
these addresses any more, but the status of the pods does. As for every removed Node, the cluster's controller ends the
quarantine when no living pod bound to that name shows them.
"""

from uuid import UUID, uuid5

from msgspec import Struct

from podtide.allocator.store.reported_addresses import Masks, add, take_reported
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.allocator.terms import ShownAddresses
from podtide.core.errors import InvalidInput

_OF_NODE = """SELECT id FROM containers WHERE subnet = $1 AND cluster = $2 AND node = $3
    UNION SELECT container FROM quarantines WHERE subnet = $1 AND cluster = $2 AND node = $3"""
_NAMESPACE = UUID("a6f2b0a3-5f0e-4d62-9d25-52ed0b1f6c8e")


class KeepForPods(Struct, frozen=True):
    """Puts addresses that living pods show into quarantine."""

    shown: ShownAddresses

    @property
    def container(self) -> str:
        """The id that stands for the unknown removed container: the same for the same report."""
        shown = self.shown
        return str(uuid5(_NAMESPACE, f"{shown.cluster}/{shown.network}/{shown.subnet}/{shown.node}"))

    @property
    def cluster(self) -> str:
        """The pods' cluster."""
        return self.shown.cluster

    def carry_out(self, transaction: SubnetTransaction) -> Script[int]:
        """Put into quarantine what no report has confirmed as a container's, and no container of that node name had."""
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
    """The containers of this node name, also removed ones with addresses in quarantine."""
    rows = yield Query(_OF_NODE, (transaction.subnet.id, shown.cluster, shown.node))
    unwritten = {
        id_
        for id_, row in transaction.containers.items()
        if (row.cluster, row.node) == (shown.cluster, shown.node)
    }
    return frozenset({id_ for (id_,) in rows} | unwritten)


def _nothing_is_later(_version: int, _chunk: int) -> int:
    """The empty mask: pods do not show when their addresses were granted, so what a report confirmed stays where it is."""
    return 0
