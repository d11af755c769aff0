"""How often a subnet's batch in force changed: each change makes all of its nodes write new requests, so few are better.

The allocator keeps what is in force, for all clusters that share the subnet, so a change counts once, whichever cluster's
controller decided it.
"""

from podtide.simulation.trace import AllocatorCall, Entry


def batch_decided(entry: Entry) -> tuple[str, int] | None:
    """The subnet and its new batch, if the entry is such a decision."""
    if isinstance(entry, AllocatorCall) and entry.batch:
        return entry.subject, entry.batch
    return None


class BatchMoves:
    """Counts the changes of the batch, entry by entry."""

    def __init__(self) -> None:
        self.count = 0
        self._in_force: dict[str, int] = {}

    def hear(self, entry: Entry) -> None:
        """Count the entry if it changes a batch. The first batch of a subnet is not a change."""
        if decided := batch_decided(entry):
            subnet, batch = decided
            self.count += self._in_force.setdefault(subnet, batch) != batch
            self._in_force[subnet] = batch
