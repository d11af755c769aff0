"""What is in force for the nodes of a subnet, changed by whoever decided from what is so."""

from msgspec import Struct

from podtide.allocator.port import InForceConflict, Subnet, SubnetInForce
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_row import SubnetRow
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.core.exact import exact, text


class PutInForce(Struct, frozen=True):
    """Let what was decided be in force."""

    decided: SubnetInForce
    container: str = ""
    cluster: str = ""

    def carry_out(self, transaction: SubnetTransaction) -> Script[Subnet]:
        """Compare the serial, and set what was decided."""
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
