"""A wish of a request object that went back, as after a restore of etcd: it is older than the last one taken, and counts.

Only the order of wishes goes back. What the container holds stays, its version goes on growing, and so no name is used
twice: names that such a wish has for release are either still the node's to give up, or nobody's.
"""

from podtide.allocator.port import Wish
from podtide.allocator.store.container_row import ContainerRow
from podtide.core.subnet.grants import Order, is_taken_anew


def take_anew(wish: Wish, row: ContainerRow, subnet: int) -> None:
    """Let the wish be the newest, if it is one to be taken anew and the container is where it says."""
    last = None if wish.instead_of is None else Order(wish.instead_of.request_uid, wish.instead_of.generation)
    if row.cluster != wish.cluster or not is_taken_anew(last, row.order, holds_nothing=row.primary is None):
        return
    if row.is_deleted:
        row.subnet, row.node = subnet, wish.node
    elif (row.subnet, row.node) != (subnet, wish.node):
        return
    row.superseded = " ".join(each for each in row.superseded.split() if each != wish.request_uid)
    row.statement_number = 0
    if row.request_uid == wish.request_uid:
        row.generation = min(row.generation, wish.generation)
