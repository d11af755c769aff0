"""How often a subnet's batch in force changed: each change makes all of its nodes ask anew, so few are better.

What is in force is read from what one cluster says of it, its ClusterSubnet. All clusters of a subnet say the same,
sooner or later, so a change counts once.
"""

from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.simulation.trace import ClusterWrite, Entry


def batch_told(entry: Entry, cluster: str) -> tuple[str, int] | None:
    """The subnet and the batch that the cluster's controller says is in force, if that is what it wrote."""
    if (
        isinstance(entry, ClusterWrite)
        and entry.cluster == cluster
        and isinstance(entry.item, ClusterSubnet)
        and entry.item.status.scaler is not None
    ):
        return entry.name, entry.item.status.scaler.batch
    return None


class BatchMoves:
    """Counts them, entry by entry."""

    def __init__(self, cluster: str) -> None:
        self.count = 0
        self._cluster = cluster
        self._in_force: dict[str, int] = {}

    def hear(self, entry: Entry) -> None:
        """Something happened, as the trace tells it. The first batch that is told is no change."""
        if told := batch_told(entry, self._cluster):
            subnet, batch = told
            self.count += self._in_force.setdefault(subnet, batch) != batch
            self._in_force[subnet] = batch
