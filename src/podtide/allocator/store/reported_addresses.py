"""Takes reported addresses from wherever a store that went back has them.

They may be free, at rest, in quarantine, or with a container that no report has confirmed, whose rows are stale.
"""

from collections.abc import Callable, Collection

from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.core.subnet.chunks import CHUNK_SIZE

Masks = dict[int, int]
"""Addresses by chunk."""

GrantedAfter = Callable[[int, int], int]
"""What of a chunk was granted later than with a version, by the report."""

_GRANTED = """SELECT grants.container, grants.chunk FROM grants JOIN containers ON containers.id = grants.container
    WHERE containers.subnet = $1"""
_PRIMARIES = "SELECT id, primary_number FROM containers WHERE subnet = $1 AND primary_number IS NOT NULL"


def take_reported(
    masks: Masks,
    transaction: SubnetTransaction,
    row: ContainerRow,
    granted_after: GrantedAfter,
    *,
    but_for: Collection[str] = (),
) -> Script[Masks]:
    """Take these addresses for a row, but for what a confirmed container got later; returns what could be taken.

    What containers of the ids `but_for` have, or left in quarantine, stays where it is.
    """
    taken = yield from transaction.take_these(masks, but_for=but_for)
    left = {chunk: rest for chunk, mask in masks.items() if (rest := mask & ~taken.get(chunk, 0))}
    if left:
        for owner in (yield from _holders(left, transaction)):
            if owner.id == row.id or owner.id in but_for:
                continue
            is_confirmed = owner.confirmed == transaction.context.recovery
            if _strip(owner, granted_after, left, taken, transaction, is_confirmed=is_confirmed):
                yield from _dissolve(owner, transaction)
    return taken


def set_primary(row: ContainerRow, number: int | None, transaction: SubnetTransaction) -> None:
    """Set the row's primary."""
    transaction.subnet.containers += (number is not None) - (row.primary_number is not None)
    row.primary_number = number


def want_what_is_held(row: ContainerRow, transaction: SubnetTransaction) -> None:
    """Reset what the row is owed to a primary, where it has none: its next wish states the rest."""
    owed = int(row.primary_number is None)
    transaction.subnet.owed += owed - row.owed
    row.wanted, row.owed, row.waiting_pods = row.held, owed, 0
    row.owed_since, row.renewed = (transaction.now, transaction.now) if owed else (0.0, 0.0)


def everything_of(row: ContainerRow) -> Masks:
    """The masks of all that a row has, its primary included."""
    masks: Masks = {}
    if (primary := row.primary) is not None:
        add(masks, primary.chunk, 1 << primary.position)
    for (_version, chunk), mask in row.grants.items():
        add(masks, chunk, mask)
    return masks


def add(masks: Masks, chunk: int, mask: int) -> None:
    """Add an address mask to the masks, in place."""
    masks[chunk] = masks.get(chunk, 0) | mask


def _dissolve(row: ContainerRow, transaction: SubnetTransaction) -> Script[None]:
    """Delete a container that no report has confirmed, and put what it still has in quarantine.

    No tombstone is left: if it is reported after all, it is created anew.
    """
    masks = everything_of(row)
    yield from transaction.quarantine(
        masks, ContainerRow(row.id, row.cluster, None, row.node, cluster_uid=row.cluster_uid)
    )
    yield from transaction.remove(row)


def _holders(masks: Masks, transaction: SubnetTransaction) -> Script[list[ContainerRow]]:
    """Containers that have something of these chunks."""
    granted = yield Query(_GRANTED, (transaction.subnet.id,))
    primaries = yield Query(_PRIMARIES, (transaction.subnet.id,))
    ids = {id_ for id_, chunk in granted if chunk in masks}
    ids |= {id_ for id_, number in primaries if number // CHUNK_SIZE in masks}
    yield from transaction.bring_in(sorted(ids))
    ids |= {
        id_ for id_, row in transaction.containers.items() if row.subnet == transaction.subnet.id
    }  # not all is written yet
    return [transaction.containers[id_] for id_ in sorted(ids)]


def _strip(  # noqa: PLR0913 - from whom, what, and by which right
    owner: ContainerRow,
    granted_after: GrantedAfter,
    masks: Masks,
    taken: Masks,
    transaction: SubnetTransaction,
    *,
    is_confirmed: bool,
) -> bool:
    """Take the masks' addresses from a container; from a confirmed one, only what was granted later to another.

    Returns whether its primary was among them.
    """
    changed = False
    for (version, chunk), mask in list(owner.grants.items()):
        bits = mask & masks.get(chunk, 0)
        if is_confirmed:
            bits &= granted_after(version, chunk)
        if bits:
            owner.set_grant(version, chunk, mask & ~bits)
            add(taken, chunk, bits)
            changed = True
    primary = None if is_confirmed else owner.primary
    if primary is not None and masks.get(primary.chunk, 0) >> primary.position & 1:
        add(taken, primary.chunk, 1 << primary.position)
        set_primary(owner, None, transaction)
        return True
    if changed:
        owner.version = transaction.next_version()
        want_what_is_held(owner, transaction)
    return False
