"""What becomes of a quarantine: it moves to the container that its machine has now, or is ended by a controller or a person.

It moves only to a container that is about to be made. An agent without records believes that addresses which
are granted later were unused; only for those that it sees at first does it find out which pod has them.
"""

from msgspec import Struct

from podtide.allocator.containers import MoveResult
from podtide.allocator.store.container_writes import PutContainer, WishOperation, fitting_row, new_row
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.allocator.store.tables.quarantines import former_containers
from podtide.core.subnet.chunks import CHUNK_SIZE


class MoveContainer(WishOperation, frozen=True):
    """Carries out a wish, after moving to it what the same machine left under a former uid."""

    def carry_out(self, transaction: SubnetTransaction) -> Script[MoveResult]:
        """Move what is in quarantine, then do as a PUT does."""
        wish = self.wish
        row = yield from fitting_row(wish, transaction)
        is_new = row is None or row.primary is None
        former = (
            (yield from former_containers(transaction.subnet.id, wish))
            if is_new and wish.machine.is_known
            else []
        )
        moved: dict[int, int] = {}
        if former:
            row = row or new_row(wish, transaction)
            for holder, _primary, _held in former:
                for chunk, mask in (yield from transaction.take_over(holder)).items():
                    moved[chunk] = moved.get(chunk, 0) | mask
            _give(row, moved, [primary for _holder, primary, _held in former], transaction)
        container = yield from PutContainer(wish).carry_out(transaction)
        addresses = tuple(
            ip
            for chunk, mask in sorted(moved.items())
            for ip in transaction.subnet.layout.addresses(chunk, mask)
        )
        held = sum(held for _holder, _primary, held in former)
        return MoveResult(container=container, moved=addresses, missing=held - len(addresses))


class EndQuarantine(Struct, frozen=True):
    """Frees addresses that a removed container left."""

    holder: str
    addresses: tuple[str, ...] = ()
    container: str = ""
    """No container's row is needed: the removed one's is a tombstone."""
    cluster: str = ""
    is_forgotten: bool = False
    """Whether the whole cluster is gone for ever. Then all of it is free, even while the store recovers: nothing is granted
    meanwhile, and a node that has some of it says so in a report."""

    def carry_out(self, transaction: SubnetTransaction) -> Script[int]:
        """Free those of the addresses that are in quarantine for it, or all of a forgotten cluster's.

        Refused while the store recovers, unless the cluster is forgotten: it may not know yet which other node has
        them.
        """
        if self.is_forgotten:
            return (yield from transaction.end_quarantine(self.holder))
        transaction.context.refuse_while_recovering()
        wanted: dict[int, int] = {}
        for address in self.addresses:
            place = transaction.subnet.layout.place(address)
            if place is None:
                continue
            wanted[place.chunk] = wanted.get(place.chunk, 0) | 1 << place.position
        return (yield from transaction.end_quarantine(self.holder, wanted))


def _give(
    row: ContainerRow, masks: dict[int, int], primaries: list[int | None], transaction: SubnetTransaction
) -> None:
    """Give these addresses to a row that has none, under new names; a former primary, or the lowest, is its primary.

    What it is owed is counted anew by the wish that follows.
    """
    numbers = [number for number in primaries if number is not None and _has(masks, number)]
    row.primary_number = numbers[0] if numbers else _lowest(masks)
    transaction.subnet.containers += 1
    row.version = transaction.next_version()
    chunk, position = divmod(row.primary_number, CHUNK_SIZE)
    for each, mask in masks.items():
        if granted := mask & ~(1 << position) if each == chunk else mask:
            row.set_grant(row.version, each, granted)


def _has(masks: dict[int, int], number: int) -> bool:
    chunk, position = divmod(number, CHUNK_SIZE)
    return bool(masks.get(chunk, 0) >> position & 1)


def _lowest(masks: dict[int, int]) -> int:
    chunk = min(masks)
    return chunk * CHUNK_SIZE + (masks[chunk] & -masks[chunk]).bit_length() - 1
