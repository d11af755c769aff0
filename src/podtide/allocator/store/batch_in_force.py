"""The batch in force in a subnet, changed by compare-and-set on its serial, and the bounds that each cluster sets for it."""

from msgspec import Struct

from podtide.allocator.errors import InForceConflict
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.allocator.subnets import Bounds, ClusterBounds, Subnet, SubnetInForce
from podtide.core.exact import exact, text

_READ_ONE = """SELECT batch, buffer, lower, upper, min_batch, fixed FROM bounds
    WHERE subnet = $1 AND cluster = $2"""
_READ = """SELECT cluster, batch, buffer, lower, upper, min_batch, fixed FROM bounds
    WHERE subnet = $1 ORDER BY cluster"""
_PUT = """INSERT INTO bounds (subnet, cluster, batch, buffer, lower, upper, min_batch, fixed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (subnet, cluster) DO UPDATE SET batch = excluded.batch, buffer = excluded.buffer,
    lower = excluded.lower, upper = excluded.upper, min_batch = excluded.min_batch, fixed = excluded.fixed"""


class PutInForce(Struct, frozen=True):
    """Puts the decided batch in force."""

    decided: SubnetInForce
    container: str = ""
    cluster: str = ""

    def carry_out(self, transaction: SubnetTransaction) -> Script[Subnet]:
        """Compare the serial, and set the batch."""
        yield from ()
        row, decided = transaction.subnet, self.decided
        columns = _columns(decided)
        if row.serial != decided.serial:
            # One more, and exactly this: it was carried out before, and the answer was lost.
            if (row.serial, _columns_of(row)) != (decided.serial + 1, columns):
                raise InForceConflict(
                    f"what is in force in subnet {row.network}/{row.name} has serial {row.serial} by now, and this was "
                    f"decided from {decided.serial}: read it again and decide anew"
                )
            return row.for_callers(transaction.now)
        scaler = row.batch, row.buffer, row.starved
        for column, value in columns.items():
            setattr(row, column, value)
        row.serial += 1
        if (row.batch, row.buffer, row.starved) != scaler:
            row.changed_at = transaction.now
        return row.for_callers(transaction.now)


def _columns(decided: SubnetInForce) -> dict[str, object]:
    return {
        "batch": decided.batch,
        "buffer": text(exact(decided.buffer, "buffer")),
        "top": decided.top,
        "exhausted": int(decided.exhausted),
        "starved": int(decided.starved),
        "step": decided.step,
        "reason": decided.reason,
    }


def _columns_of(row: SubnetRow) -> dict[str, object]:
    return _columns(row.in_force(row.changed_at))


class SetBounds(Struct, frozen=True):
    """Stores a cluster's bounds."""

    cluster: str
    bounds: Bounds
    container: str = ""

    def carry_out(self, transaction: SubnetTransaction) -> Script[None]:
        """Write the bounds, unless they are unchanged."""
        bounds = self.bounds
        row = (
            bounds.batch,
            text(exact(bounds.buffer)),
            text(exact(bounds.lower)),
            text(exact(bounds.upper)),
            bounds.min_batch,
            bounds.fixed,
        )
        there = yield Query(_READ_ONE, (transaction.subnet.id, self.cluster))
        if not there or tuple(there[0]) != row:
            yield Query(_PUT, (transaction.subnet.id, self.cluster, *row))


def read_bounds(subnet: int, clusters: set[str]) -> Script[tuple[ClusterBounds, ...]]:
    """The bounds of these clusters, by name. A cluster without containers in the subnet has no say."""
    rows = yield Query(_READ, (subnet,))
    return tuple(
        ClusterBounds(
            cluster,
            Bounds(batch=batch, buffer=buffer, lower=lower, upper=upper, min_batch=min_batch, fixed=fixed),
        )
        for cluster, batch, buffer, lower, upper, min_batch, fixed in rows
        if cluster in clusters
    )
