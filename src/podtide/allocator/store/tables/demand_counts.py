"""How many containers of a subnet are alike, by cluster, what they state and what they take.

The counts are kept by the transaction that changes a container, so the batch is decided from a few hundred rows at one
instant, and never from a scan of containers. A change of one container changes two rows at most.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from podtide.allocator.store.script import Query, Rows, Script, TableChange
from podtide.allocator.store.tables.container_row import ContainerRow, from_text
from podtide.allocator.subnets import ContainerCount
from podtide.core.subnet.demand_by_batch import ContainerDemand

_ADD = """INSERT INTO alike (subnet, cluster, stated, taken, containers) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (subnet, cluster, stated, taken) DO UPDATE SET containers = alike.containers + excluded.containers"""
_DROP = """DELETE FROM alike
    WHERE subnet = $1 AND cluster = $2 AND stated = $3 AND taken = $4 AND containers = $5"""
_SUBTRACT = """UPDATE alike SET containers = containers - $5
    WHERE subnet = $1 AND cluster = $2 AND stated = $3 AND taken = $4 AND containers <> $5"""
_READ = "SELECT cluster, stated, taken, containers FROM alike WHERE subnet = $1 ORDER BY stated, taken"


class DemandKey(NamedTuple):
    """What containers that are counted together have in common."""

    cluster: str
    stated: str
    taken: int


def count_alike(rows: Iterable[ContainerRow], subnet: int) -> Counter[DemandKey]:
    """The counts of the containers in the subnet. Tombstones are in no subnet."""
    return Counter(DemandKey(row.cluster, row.stated, row.taken) for row in rows if row.subnet == subnet)


def count_changes(
    subnet: int, before: Counter[DemandKey], after: Counter[DemandKey]
) -> tuple[TableChange, ...]:
    """What changed of the counts."""
    changes = {likeness: after[likeness] - before[likeness] for likeness in sorted({*before, *after})}
    fewer = [(subnet, *likeness, -change) for likeness, change in changes.items() if change < 0]
    return (
        TableChange(_DROP, fewer),
        TableChange(_SUBTRACT, fewer),
        TableChange(
            _ADD, [(subnet, *likeness, change) for likeness, change in changes.items() if change > 0]
        ),
    )


def read_counts(subnet: int) -> Script[tuple[tuple[ContainerCount, ...], set[str]]]:
    """The counts over all clusters, and the clusters that have containers in the subnet."""
    rows: Rows = yield Query(_READ, (subnet,))
    summed: Counter[ContainerDemand] = Counter()
    for _cluster, stated, taken, containers in rows:
        summed[ContainerDemand(from_text(stated), taken)] += containers
    alike = tuple(
        ContainerCount(holding.stated, holding.taken, containers) for holding, containers in summed.items()
    )
    return alike, {cluster for cluster, *_ in rows}
