"""Reading what a subnet's pods need, once a minute.

It is read from the counts of statements without a lock, and then written in the subnet's transaction with its totals. So
grants never wait for the counts, and it is one small write per subnet and minute, however many nodes and replicas there are.
"""

from fractions import Fraction

from msgspec import Struct

from podtide.allocator.store.batch_in_force import read_bounds
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.demand_counts import read_counts
from podtide.allocator.store.tables.subnet_row import SubnetRow, find_subnet
from podtide.core.subnet.demand_by_batch import ContainerDemand, SubnetDemand
from podtide.core.subnet.demand_reading import DemandReading, read_demand, smallest_scaler
from podtide.core.subnet.scaler import SubnetScaler
from podtide.core.subnet.usage_series import is_reading_due, to_milliseconds


class NoteUsage(Struct, frozen=True):
    """Writes down how the subnet is used, unless another replica was quicker."""

    reading: DemandReading
    container: str = ""
    cluster: str = ""

    def carry_out(self, transaction: SubnetTransaction) -> Script[None]:
        """Have the reading written when the transaction is saved."""
        yield from ()
        if _is_due(transaction.subnet, transaction.now):
            transaction.note_demand(self.reading)


def read_due_demand(network: str, name: str, now: float) -> Script[DemandReading | None]:
    """What the subnet's pods need; None if that was read within the last minute."""
    row, _due = yield from find_subnet(network, name, now)
    if not _is_due(row, now):
        return None
    alike, clusters = yield from read_counts(row.id)
    bounds = yield from read_bounds(row.id, clusters)
    demand = SubnetDemand(
        holdings={ContainerDemand(each.stated, each.taken): each.containers for each in alike},
        ungoverned=row.quarantined,
        in_force=SubnetScaler(row.batch, Fraction(row.buffer)),
        top=row.top,
        exhausted=bool(row.exhausted),
        is_overdue=False,
    )
    smallest = smallest_scaler(Fraction(each.bounds.buffer) for each in bounds)
    return read_demand(demand, smallest, max(0, row.reserved - row.quarantined - row.containers))


def _is_due(row: SubnetRow, now: float) -> bool:
    return is_reading_due(to_milliseconds(row.demand_read), to_milliseconds(now))
