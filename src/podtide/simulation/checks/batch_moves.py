"""How often a subnet's batch in force changed: each change makes all of its nodes ask anew, so few are better.

What is in force is the allocator's, for all clusters that share the subnet, so a change counts once, whoever decided it
and however its nodes are told of it.
"""

from podtide.simulation.trace import AllocatorCall, Entry


def batch_decided(entry: Entry) -> tuple[str, int] | None:
    """The subnet and the batch that is in force from now on, if that is what was decided."""
    if isinstance(entry, AllocatorCall) and entry.batch:
        return entry.subject, entry.batch
    return None


class BatchMoves:
    """Counts them, entry by entry."""

    def __init__(self) -> None:
        self.count = 0
        self._in_force: dict[str, int] = {}

    def hear(self, entry: Entry) -> None:
        """Something happened, as the trace tells it. The first batch is no change."""
        if decided := batch_decided(entry):
            subnet, batch = decided
            self.count += self._in_force.setdefault(subnet, batch) != batch
            self._in_force[subnet] = batch
