"""What can be asked without changing anything: containers, who is owed, what demand there is, readings of utilization."""

from podtide.allocator.containers import AllocatedContainer, ContainerPage
from podtide.allocator.errors import NoSuchContainer
from podtide.allocator.store.batch_in_force import read_bounds
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.tables.container_row import COLUMNS, gather_containers, load_containers
from podtide.allocator.store.tables.demand_counts import read_counts
from podtide.allocator.store.tables.history import read_samples, read_usage
from podtide.allocator.store.tables.subnet_row import COLUMNS as SUBNET_COLUMNS
from podtide.allocator.store.tables.subnet_row import SubnetRow, find_subnet
from podtide.allocator.subnets import Debt, SubnetDemandReport, SubnetUsage, UsageStep, Utilization

_SUBNET_OF_CONTAINER = """SELECT containers.cluster, subnets.network, subnets.name
    FROM containers LEFT JOIN subnets ON subnets.id = containers.subnet WHERE containers.id = $1"""
_SUBNETS_BY_ID = f"SELECT {SUBNET_COLUMNS} FROM subnets WHERE id IN $1"  # noqa: S608 - our own columns
_OWED = """SELECT id, cluster, node, owed, waiting_pods, owed_since, renewed FROM containers
    WHERE subnet = $1 AND owed > 0
    ORDER BY CASE WHEN renewed > $2 THEN 0 ELSE 1 END, waiting_pods DESC, owed_since, id"""

_NARROWING = {
    "cluster": "containers.cluster",
    "node": "containers.node",
    "network": "subnets.network",
    "subnet": "subnets.name",
}


def subnet_of_container(container: str) -> Script[tuple[str, str, str] | None]:
    """The container's cluster, network and subnet, the latter "" when it was deleted; None when it is unknown."""
    rows = yield Query(_SUBNET_OF_CONTAINER, (container,))
    if not rows:
        return None
    cluster, network, subnet = rows[0]
    return cluster, network or "", subnet or ""


def get_container(container: str, cluster: str) -> Script[AllocatedContainer]:
    """The container and its addresses."""
    row = (yield from load_containers([container])).get(container)
    if row is None or row.primary is None or row.cluster != cluster:
        raise NoSuchContainer(
            f"cluster {cluster} has no container {container}: it was never made, was deleted, or is another cluster's"
        )
    subnets = yield from _subnets({row.subnet})
    return row.for_callers(subnets[row.subnet])


def list_containers(narrowed: dict[str, str], limit: int, after: str) -> Script[ContainerPage]:
    """Containers by id, after one; `narrowed` gives the cluster, node, network and subnet they must have."""
    conditions = [f"{_NARROWING[what]} = ${number}" for number, what in enumerate(narrowed, 3)]
    rows = yield Query(
        f"""SELECT {COLUMNS}, grants.version, grants.chunk, grants.mask
            FROM (SELECT containers.* FROM containers JOIN subnets ON subnets.id = containers.subnet
                  WHERE {" AND ".join(["containers.id > $1", "containers.primary_number IS NOT NULL", *conditions])}
                  ORDER BY containers.id LIMIT $2) AS containers
            LEFT JOIN grants ON grants.container = containers.id ORDER BY containers.id""",  # noqa: S608 - our own columns
        (after, limit + 1, *narrowed.values()),
    )
    found = list(gather_containers(rows).values())
    subnets = yield from _subnets({row.subnet for row in found})
    return ContainerPage(
        tuple(row.for_callers(subnets[row.subnet]) for row in found[:limit]),
        found[limit - 1].id if len(found) > limit else "",
    )


def list_owed(
    network: str, name: str, now: float, claim_seconds: float
) -> Script[tuple[tuple[Debt, ...], bool]]:
    """Claims in the order they are served, lapsed ones last; and whether one was renewed by a clock that was ahead."""
    subnet, _due = yield from find_subnet(network, name, now)
    rows = yield Query(_OWED, (subnet.id, now - claim_seconds))
    debts = tuple(
        Debt(
            container=id_, cluster=cluster, node=node, owed=owed, waiting_pods=waiting, since=min(since, now)
        )
        for id_, cluster, node, owed, waiting, since, _renewed in rows
    )
    return debts, any(renewed > now for *_row, renewed in rows)


def read_demand(network: str, name: str, now: float) -> Script[tuple[SubnetDemandReport, bool]]:
    """The counts that the subnet's batch is decided from, and whether a cool-down in it is over."""
    subnet, due = yield from find_subnet(network, name, now)
    alike, clusters = yield from read_counts(subnet.id)
    bounds = yield from read_bounds(subnet.id, clusters)
    return SubnetDemandReport(subnet=subnet.for_callers(now), alike=alike, bounds=bounds), due


def read_history(
    network: str, name: str, since: float, until: float, now: float
) -> Script[tuple[Utilization, ...]]:
    """Past utilization of a subnet."""
    subnet, _due = yield from find_subnet(network, name, now)
    return (yield from read_samples(subnet, since, until, now))


def read_usage_history(  # noqa: PLR0913, PLR0917 - which subnet, and of which time
    network: str, name: str, since: float, until: float, now: float, step: UsageStep
) -> Script[tuple[SubnetUsage, ...]]:
    """How a subnet was used."""
    subnet, _due = yield from find_subnet(network, name, now)
    return (yield from read_usage(subnet, since, until, now, step))


def _subnets(ids: set[int | None]) -> Script[dict[int | None, SubnetRow]]:
    if not ids:
        return {}
    rows = yield Query(_SUBNETS_BY_ID, (sorted(ids, key=str),))
    return {row[0]: SubnetRow(*row) for row in rows}
