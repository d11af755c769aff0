"""Records what a node has by its NodeNetworkConfig as held by its container, in a store that went back.

The store's own rows are stale: what they say of a node counts only until the node's cluster has reported it. So a
reported address is taken from wherever it is: free, resting, or with a container that no report has confirmed. Two
nodes that report one address are a conflict, which is returned to the caller: the later grant keeps the address,
because it had to be released before it could be granted again. A reported address never becomes free by this: where no
container can have it, it goes into quarantine.

A node that was registered again has its primary in another container than the store knows. The former one
then has only addresses that were not reported, and these go into quarantine: a container without a primary is not listed
to controllers, so none would ever delete it.
"""

from msgspec import Struct

from podtide.allocator.store.reported_addresses import (
    Masks,
    add,
    everything_of,
    set_primary,
    take_reported,
    want_what_is_held,
)
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.allocator.terms import HeldContainer
from podtide.core.errors import InvalidInput
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.grants import parse_address_name
from podtide.core.subnet.layout import AddressPlace


class _ReportedPlaces(Struct):
    """The reported addresses, as places in the subnet."""

    primary: AddressPlace
    grants: dict[tuple[int, int], int]
    """Masks by version and chunk."""
    unnamed: Masks
    """Addresses whose names are not those of a grant to this node."""

    def granted_after(self, version: int, chunk: int) -> int:
        """What of a chunk was granted later than with this version."""
        later = 0
        for (granted, where), mask in self.grants.items():
            if where == chunk and granted > version:
                later |= mask
        return later

    def masks(self) -> Masks:
        """All of it, by chunk."""
        masks = dict(self.unnamed)
        add(masks, self.primary.chunk, 1 << self.primary.position)
        for (_version, chunk), mask in self.grants.items():
            add(masks, chunk, mask)
        return masks


class AdoptContainer(Struct, frozen=True):
    """Records that a container holds what its node has."""

    held: HeldContainer

    @property
    def container(self) -> str:
        """Its id."""
        return self.held.id

    @property
    def cluster(self) -> str:
        """Whose it is."""
        return self.held.cluster

    def carry_out(self, transaction: SubnetTransaction) -> Script[tuple[str, ...]]:
        """Take every reported address for the container, and put the rest of what it had in quarantine."""
        held, recovery = self.held, transaction.context.recovery
        if not recovery:
            return ()
        if held.recovery != recovery:
            raise InvalidInput(
                f"what node {held.node} holds was reported for recovery {held.recovery}, and {recovery} goes on: report anew"
            )
        row = transaction.containers.get(held.id)
        transaction.context.refuse_another_cluster(held.cluster, held.cluster_uid)
        _number_as_named(held, transaction)
        there = _places(held, transaction)
        complaints = [
            f"{ip} of node {held.node} has a name that was not granted to it: it stays in quarantine for a while"
            for chunk, mask in there.unnamed.items()
            for ip in transaction.subnet.layout.addresses(chunk, mask)
        ]
        if row is not None and (refusal := _refusal(held, row, transaction)):
            taken = yield from take_reported(there.masks(), transaction, row, there.granted_after)
            yield from transaction.quarantine(taken, _quarantined_as(held))
            return (*complaints, refusal)
        if row is None:
            row = ContainerRow(held.id, held.cluster, transaction.subnet.id, held.node)
            transaction.containers[held.id] = row
        complaints += yield from _hold(row, there, transaction, recovery, held)
        return tuple(complaints)


def _number_as_named(held: HeldContainer, transaction: SubnetTransaction) -> None:
    """Give CIDRs that were added again, and are unused so far, the numbers that the reported names were made of.

    Between them there may have been others, which drained and left since the backup.
    """
    for address in () if held.is_foreign else held.addresses:
        place, name = transaction.subnet.layout.place(address.ip), parse_address_name(address.name)
        if place is None or name is None or name.container != held.id or name.place == place:
            continue
        block = transaction.subnet.layout.block(place.chunk)
        if name.place.position == place.position:
            transaction.subnet.move_unused(block.cidr, block.first_chunk + name.place.chunk - place.chunk)


def _places(held: HeldContainer, transaction: SubnetTransaction) -> _ReportedPlaces:
    layout = transaction.subnet.layout
    primary = layout.place(held.primary)
    grants: dict[tuple[int, int], int] = {}
    unnamed: Masks = {}
    outside = [] if primary else [held.primary]
    counted = {primary}
    for address in held.addresses:
        place = layout.place(address.ip)
        name = parse_address_name(address.name)
        if place is None:
            outside.append(address.ip)
        elif place in counted:
            continue  # said twice
        elif held.is_foreign:
            key = (transaction.subnet.sequence + 1, place.chunk)
            grants[key] = grants.get(key, 0) | 1 << place.position
        elif name is None or (name.container, name.place) != (held.id, place):
            add(unnamed, place.chunk, 1 << place.position)
        else:
            key = (name.version, place.chunk)
            grants[key] = grants.get(key, 0) | 1 << place.position
        counted.add(place)
    if primary is None or outside:
        raise InvalidInput(
            f"node {held.node} has {', '.join(outside[:3]) or 'no primary'}, which subnet {held.network}/{held.subnet} "
            "cannot give: let the subnet have the CIDRs that it had (`podtide subnet grow`), and the report goes on"
        )
    return _ReportedPlaces(primary, grants, unnamed)


def _refusal(held: HeldContainer, row: ContainerRow, transaction: SubnetTransaction) -> str:
    """Why the container cannot be adopted; its addresses then stay in quarantine for a while."""
    if row.cluster != held.cluster:
        return f"container {held.id} of node {held.node} is cluster {row.cluster}'s"
    if row.is_deleted:
        return f"container {held.id} of node {held.node} was deleted"
    if row.subnet != transaction.subnet.id:
        return f"container {held.id} of node {held.node} is in another subnet than {held.subnet}"
    return ""


def _hold(
    row: ContainerRow,
    there: _ReportedPlaces,
    transaction: SubnetTransaction,
    recovery: int,
    held: HeldContainer,
) -> Script[list[str]]:
    before = everything_of(row)
    wanted = there.masks()
    missing = {chunk: mask & ~before.get(chunk, 0) for chunk, mask in wanted.items()}
    taken = yield from take_reported(missing, transaction, row, there.granted_after)
    lost = {chunk: left for chunk, mask in missing.items() if (left := mask & ~taken.get(chunk, 0))}
    complaints = [
        f"{ip} is reported by node {held.node} of {held.cluster}, and another node that reported it got it later: it stays there"
        for chunk, mask in lost.items()
        for ip in transaction.subnet.layout.addresses(chunk, mask)
    ]
    surplus = {chunk: mask & ~wanted.get(chunk, 0) for chunk, mask in before.items()}
    for chunk, mask in there.unnamed.items():
        add(surplus, chunk, mask & ~lost.get(chunk, 0))
    yield from transaction.quarantine(
        {chunk: mask for chunk, mask in surplus.items() if mask}, _quarantined_as(held)
    )
    for version, chunk in list(row.grants):
        row.set_grant(version, chunk, 0)
    for (version, chunk), mask in there.grants.items():
        row.set_grant(version, chunk, mask & ~lost.get(chunk, 0))
    has_primary = not lost.get(there.primary.chunk, 0) >> there.primary.position & 1
    set_primary(
        row, there.primary.chunk * CHUNK_SIZE + there.primary.position if has_primary else None, transaction
    )
    row.version = max(row.version, held.version)
    versions = [version for version, _chunk in there.grants]
    transaction.subnet.sequence = max(transaction.subnet.sequence, row.version, *versions)
    if held.gave_up or lost or held.is_foreign:
        row.version = transaction.next_version()  # by the one that was reported, the node was shown more
    row.request_uid, row.generation = held.request_uid, held.generation
    row.cluster_uid, row.confirmed = held.cluster_uid, recovery
    want_what_is_held(row, transaction)
    return complaints


def _quarantined_as(held: HeldContainer) -> ContainerRow:
    """The record of an address in quarantine without a machine, so that no move takes it for a sandbox's."""
    return ContainerRow(held.id, held.cluster, None, held.node, cluster_uid=held.cluster_uid)
