"""A container that holds what another program gave its node, so that podtide can take that program's place.

The addresses are in use by pods that know nothing of it. So either all of them become the container's or none does: with
a part of them reserved, the rest would be granted to other nodes. They get names of this store, as every grant has.
"""

from msgspec import Struct

from podtide.allocator.containers import AllocatedContainer, ContainerReservation
from podtide.allocator.errors import StaleWish, SubnetInUse
from podtide.allocator.store.container_writes import another_cluster
from podtide.allocator.store.reported_addresses import (
    Masks,
    add,
    everything_of,
    set_primary,
    want_what_is_held,
)
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.core.errors import InvalidInput
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.layout import AddressPlace

_MOST_NAMED = 5


class ReserveContainer(Struct, frozen=True):
    """Reserves what another program gave a node."""

    reservation: ContainerReservation

    @property
    def container(self) -> str:
        """The container's id."""
        return self.reservation.id

    @property
    def cluster(self) -> str:
        """The container's cluster."""
        return self.reservation.cluster

    def carry_out(self, transaction: SubnetTransaction) -> Script[AllocatedContainer]:
        """Take every address that the container does not have yet, or refuse and change nothing."""
        asked = self.reservation
        row = transaction.containers.get(asked.id)
        is_own = row is not None and row.cluster == asked.cluster
        transaction.context.refuse_another_cluster(
            asked.cluster, asked.cluster_uid, row.cluster_uid if row and is_own else ""
        )
        transaction.context.refuse_while_recovering()
        primary, others = _places(asked, transaction)
        if row is not None:
            _refuse_what_does_not_fit(asked, primary, row, transaction)
        wanted = dict(others)
        add(wanted, primary.chunk, 1 << primary.position)
        held = everything_of(row) if row else {}
        missing = {chunk: left for chunk, mask in wanted.items() if (left := mask & ~held.get(chunk, 0))}
        if used := (yield from transaction.held_by_others(missing, asked.id)):
            more = f" and {len(used) - _MOST_NAMED} more" if len(used) > _MOST_NAMED else ""
            raise SubnetInUse(
                f"node {asked.node} has {', '.join(used[:_MOST_NAMED])}{more} of subnet {asked.network}/{asked.subnet} by its "
                "NodeNetworkConfig, and another node has them here, or left them in quarantine: find out whose they are "
                "(`podtide check`, `podtide quarantine list`); nothing was reserved"
            )
        if row is None:
            row = ContainerRow(asked.id, asked.cluster, transaction.subnet.id, asked.node)
            transaction.containers[asked.id] = row
        if missing:
            yield from transaction.take_these(missing)
            _give(row, missing, primary, transaction)
        row.cluster_uid = row.cluster_uid or asked.cluster_uid
        if not row.request_uid:
            row.request_uid, row.generation = asked.request_uid, asked.generation
        return row.for_callers(transaction.subnet)


def _places(asked: ContainerReservation, transaction: SubnetTransaction) -> tuple[AddressPlace, Masks]:
    """Where the primary is, and the other addresses by chunk."""
    layout = transaction.subnet.layout
    primary = layout.place(asked.primary)
    others: Masks = {}
    outside = [] if primary else [asked.primary]
    for address in asked.addresses:
        place = layout.place(address)
        if place is None:
            outside.append(address)
        elif place != primary:
            add(others, place.chunk, 1 << place.position)
    if primary is None or outside:
        raise InvalidInput(
            f"node {asked.node} has {', '.join(outside[:_MOST_NAMED])}, which subnet {asked.network}/{asked.subnet} cannot give: "
            "see that it has the CIDR and the gateway that the node's NodeNetworkConfig shows, and keeps none of these back"
        )
    return primary, others


def _refuse_what_does_not_fit(
    asked: ContainerReservation, primary: AddressPlace, row: ContainerRow, transaction: SubnetTransaction
) -> None:
    if row.cluster != asked.cluster:
        raise another_cluster(asked.id)
    if row.is_deleted:
        raise StaleWish(
            f"container {asked.id} of node {asked.node} was deleted, and its id never comes back: a node that joins again has "
            "another uid"
        )
    if row.subnet != transaction.subnet.id:
        raise InvalidInput(
            f"container {asked.id} of node {asked.node} is in another subnet than {asked.subnet}"
        )
    if row.node != asked.node:
        raise InvalidInput(
            f"container {asked.id} is node {row.node}'s, not {asked.node}'s: use each Node's own uid"
        )
    if row.primary is not None and row.primary != primary:
        there = transaction.subnet.layout.address(row.primary)
        raise InvalidInput(
            f"container {asked.id} of node {asked.node} has {there} as its primary, and its NodeNetworkConfig shows "
            f"{asked.primary}: it was granted before what the node has was reserved; delete its pods and its Node, or stop here"
        )


def _give(row: ContainerRow, masks: Masks, primary: AddressPlace, transaction: SubnetTransaction) -> None:
    """Give a row these addresses under new names, the primary among them if it has none."""
    granted = dict(masks)
    if row.primary is None:
        granted[primary.chunk] &= ~(1 << primary.position)
        set_primary(row, primary.chunk * CHUNK_SIZE + primary.position, transaction)
    row.version = transaction.next_version()
    for chunk, mask in granted.items():
        if mask:
            row.set_grant(row.version, chunk, mask)
    want_what_is_held(row, transaction)
