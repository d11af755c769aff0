"""What removed containers left: one row for each whose addresses are in quarantine, beside their masks in `resting`.

A row names their node and machine, and the time before which the quarantine should not end. It is deleted with the last
of its addresses. So the quarantines of a cluster or node are found without reading the tombstones, which are kept for
ever.
"""

from collections import defaultdict

from msgspec import structs

from podtide.allocator.containers import Wish
from podtide.allocator.quarantine import Quarantined, QuarantinePage
from podtide.allocator.store.script import Query, Rows, Script, insert_into
from podtide.allocator.store.tables.container_row import ContainerRow
from podtide.allocator.store.tables.subnet_row import COLUMNS as SUBNET_COLUMNS
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.core.machine_identity import MachineIdentity
from podtide.core.subnet.quarantine import is_from_the_future

_BEGIN = insert_into(
    "quarantines",
    ("container", "subnet", "cluster", "cluster_uid", "node", "machine_id", "system_uuid", "boot_id", "primary_number", "held",
     "began", "until"),
) + """ ON CONFLICT (container) DO UPDATE SET held = quarantines.held + excluded.held, until = excluded.until,
    primary_number = coalesce(excluded.primary_number, quarantines.primary_number),
    machine_id = CASE WHEN excluded.boot_id = '' THEN quarantines.machine_id ELSE excluded.machine_id END,
    system_uuid = CASE WHEN excluded.boot_id = '' THEN quarantines.system_uuid ELSE excluded.system_uuid END,
    boot_id = CASE WHEN excluded.boot_id = '' THEN quarantines.boot_id ELSE excluded.boot_id END"""  # fmt: skip
"""What a store that went back put in quarantine of a container has no machine; if the container is removed later, its has.
Then all of it is that machine's."""
_FORGET = "DELETE FROM quarantines WHERE container = $1"
_FORMER = """SELECT container, primary_number, held FROM quarantines /*index quarantines_by_node*/
    WHERE cluster = $1 AND node = $2 AND subnet = $3 AND machine_id = $4 AND system_uuid = $5 AND boot_id = $6
        AND cluster_uid = $7
    ORDER BY until DESC, container"""
_SUBNET = """SELECT quarantines.cluster, quarantines.cluster_uid, subnets.network, subnets.name
    FROM quarantines JOIN subnets ON subnets.id = quarantines.subnet WHERE quarantines.container = $1"""
_LIST = """SELECT container, subnet, cluster, cluster_uid, node, machine_id, system_uuid, boot_id, until FROM quarantines
    WHERE container > $1 AND until <= $2"""
_MASKS = """SELECT holder, chunk, mask FROM resting /*index quarantined_by_holder*/
    WHERE quarantined = 1 AND subnet = $1 AND holder IN $2"""
_SUBNETS = f"SELECT {SUBNET_COLUMNS} FROM subnets WHERE id IN $1"  # noqa: S608 - our own columns
_LATEST = "SELECT max(began) FROM quarantines"
_BEGIN_NOW = "UPDATE quarantines SET until = $1 + (until - began), began = $1 WHERE began > $1"
_OF_CLUSTER = "SELECT container, cluster_uid FROM quarantines WHERE cluster = $1 ORDER BY container"
_NEVER = 1e18


def begin_quarantine(
    subnet: int, former: ContainerRow, held: int, *, began: float, until: float
) -> Script[None]:
    """Record what a removed container left."""
    yield Query(
        _BEGIN,
        (
            former.id,
            subnet,
            former.cluster,
            former.cluster_uid,
            former.node,
            former.machine_id,
            former.system_uuid,
            former.boot_id,
            former.primary_number,
            held,
            began,
            until,
        ),
    )


def forget_quarantine(container: str) -> Script[None]:
    """Delete the record: nothing of the container is in quarantine any more."""
    yield Query(_FORGET, (container,))


def former_containers(subnet: int, wish: Wish) -> Script[list[tuple[str, int | None, int]]]:
    """Removed containers of the wish's machine and boot under its node's name: their ids, primaries and what they held.

    They record the wish's cluster. A removed container that records none was never known by a machine, either.
    """
    machine = wish.machine
    rows = yield Query(
        _FORMER,
        (wish.cluster, wish.node, subnet, *structs.astuple(machine), wish.cluster_uid),
    )
    return [(container, primary, held) for container, primary, held in rows]


def subnet_of_quarantine(container: str) -> Script[tuple[str, str, str, str] | None]:
    """Cluster, its uid, network and subnet of what a removed container left; None when nothing is in quarantine."""
    rows = yield Query(_SUBNET, (container,))
    if not rows:
        return None
    cluster, cluster_uid, network, subnet = rows[0]
    return cluster, cluster_uid, network, subnet


def quarantines_of(cluster: str, uid: str | None) -> Script[list[str]]:
    """The removed containers of a cluster of which something is in quarantine; with `uid`, those that record it."""
    rows = yield Query(_OF_CLUSTER, (cluster,))
    return [container for container, recorded in rows if uid is None or recorded == uid]


def began_in_the_future(now: float) -> Script[bool]:
    """Whether a quarantine began by a clock that was ahead."""
    ((latest,),) = yield Query(_LATEST)
    return latest is not None and is_from_the_future(latest, now)


def begin_now(now: float) -> Script[None]:
    """Let every quarantine that began by a clock that was ahead begin now, with its full duration."""
    yield Query(_BEGIN_NOW, (now,))


def list_quarantined(
    narrowed: dict[str, str], limit: int, after: str, now: float, *, due: bool
) -> Script[QuarantinePage]:
    """One page of what is in quarantine, by removed container."""
    conditions = "".join(f" AND {what} = ${number}" for number, what in enumerate(narrowed, 4))
    rows = yield Query(
        f"{_LIST}{conditions} ORDER BY container LIMIT $3",
        (after, now if due else _NEVER, limit + 1, *narrowed.values()),
    )
    addresses, subnets = yield from _addresses(rows[:limit])
    return QuarantinePage(
        tuple(
            Quarantined(
                container=container,
                cluster=cluster,
                cluster_uid=cluster_uid,
                node=node,
                network=subnets[subnet].network,
                subnet=subnets[subnet].name,
                addresses=addresses[container],
                machine=MachineIdentity(*machine),
                until=until,
                seconds_left=max(0.0, until - now),
            )
            for container, subnet, cluster, cluster_uid, node, *machine, until in rows[:limit]
        ),
        rows[limit - 1][0] if len(rows) > limit else "",
    )


def _addresses(
    rows: Rows,
) -> Script[tuple[dict[str, tuple[str, ...]], dict[int, SubnetRow]]]:
    """The addresses by container, in their order, and the subnets by id."""
    holders: defaultdict[int, list[str]] = defaultdict(list)
    for container, subnet, *_others in rows:
        holders[subnet].append(container)
    if not holders:
        return {}, {}
    subnets = {row[0]: SubnetRow(*row) for row in (yield Query(_SUBNETS, (sorted(holders),)))}
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for subnet, containers in holders.items():
        for holder, chunk, mask in (yield Query(_MASKS, (subnet, containers))):
            found[holder].append((chunk, mask))
    return {
        container: tuple(
            ip
            for chunk, mask in sorted(found[container])
            for ip in subnets[subnet].layout.addresses(chunk, mask)
        )
        for subnet, containers in holders.items()
        for container in containers
    }, subnets
