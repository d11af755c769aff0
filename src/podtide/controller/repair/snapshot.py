"""What one pass of leak repair reads: first who is said to hold what, and then which of these pods exist.

The order matters. A pod that is created and gets an address between two reads must not look like an address without a
pod: Whereabouts reads pods first, and frees addresses of living pods (design T23). Reservations are read before pools
for the same reason: they are created before, and deleted after, the allocation they are for.

A cluster of 5,000 nodes has a hundred thousand pods. They are read page by page, only in namespaces whose pods hold
anything, and only pods that do are remembered.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from podtide.cluster.listing import T, list_kept
from podtide.cluster.port import Cluster, NotFound, R
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.leaks import PodSeen
from podtide.core.ranges import IPAddress, IPNetwork
from podtide.networks.attachments import AttachedNetwork, read_attachment
from podtide.networks.audit_picture import allocation_of
from podtide.networks.ownership import KnownNetworks, PoolNetwork, pool_range
from podtide.networks.pods import addresses_shown, has_ended, uids_of
from podtide.resources.ip_pool import IPPool
from podtide.resources.names import address_at
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodPhase

_PODREF = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""A valid `namespace/name` in Kubernetes."""


class PoolEntry(Struct, frozen=True):
    """One entry of a pool: its key there and its holder. An entry that another holder wrote is another entry."""

    pool: str
    key: str
    holder: Allocation


class IPPoolSnapshot(Struct, frozen=True, kw_only=True):
    """What is remembered of an IPPool."""

    name: str
    range: IPNetwork | None
    belonging: PoolNetwork | None
    entries: tuple[PoolEntry, ...]
    is_miscounted: bool = False
    """Whether the count that people see is not that of the entries."""


class RepairSnapshot(Struct, frozen=True, kw_only=True):
    """The result of one read."""

    schedules: frozenset[str]
    """The cron expressions of the configurations."""
    reservations: tuple[OverlappingRangeIPReservation, ...]
    pools: dict[str, IPPoolSnapshot]

    def entries(self) -> Iterator[PoolEntry]:
        """All entries of all pools."""
        for pool in self.pools.values():
            yield from pool.entries

    def address_of(self, held: PoolEntry) -> IPAddress | None:
        """The address of an entry; None if its key is not valid in the pool's range."""
        network = self.pools[held.pool].range
        return None if network is None else address_at(network, held.key)

    def podrefs(self) -> set[str]:
        """The pods for which anything is held, by `namespace/name`."""
        return {held.holder.podref for held in self.entries()} | {
            item.spec.podref for item in self.reservations
        }


async def read_snapshot(cluster: Cluster, namespace: str) -> RepairSnapshot:
    """Read configurations, reservations and pools."""
    attached = [
        item
        for item in await _list(cluster, NetworkAttachmentDefinition, "", read_attachment)
        if isinstance(item, AttachedNetwork)
    ]
    known = KnownNetworks(item.network for item in attached)
    reservations = await _list(cluster, OverlappingRangeIPReservation, namespace, lambda item: item)
    pools = await _list(cluster, IPPool, namespace, lambda pool: _pool_snapshot(pool, known))
    return RepairSnapshot(
        schedules=frozenset(item.config.reconciler_cron_expression for item in attached) - {""},
        reservations=tuple(reservations),
        pools={pool.name: pool for pool in pools},
    )


async def read_pods(
    cluster: Cluster, podrefs: Iterable[str], is_node_there: Callable[[str], bool]
) -> dict[str, PodSeen]:
    """Those of the pods that exist."""
    wanted = set(filter(can_be_pod, podrefs))

    def keep(pod: Pod) -> tuple[str, PodSeen] | None:
        podref = str(pod.key)
        return (podref, pod_seen(pod, is_node_there)) if podref in wanted else None

    pods: dict[str, PodSeen] = {}
    for namespace in sorted({podref.partition("/")[0] for podref in wanted}):
        pods.update(await list_kept(cluster, Pod, namespace, keep=keep))
    return pods


def can_be_pod(podref: str) -> bool:
    """Whether a pod can have that name.

    Any tenant may write anything there, and one bad text must not end the whole pass.
    """
    return _PODREF.fullmatch(podref) is not None


def pod_seen(pod: Pod, is_node_there: Callable[[str], bool]) -> PodSeen:
    """The parts of the pod that matter here."""
    node = pod.spec.node_name
    return PodSeen(
        uids_of(pod),
        has_ended(pod),
        stranded=bool(node) and not is_node_there(node),
        shown=(addresses_shown(pod) if pod.status.phase is PodPhase.RUNNING else None) or frozenset(),
    )


def _pool_snapshot(pool: IPPool, known: KnownNetworks) -> IPPoolSnapshot | None:
    """The pool without what is not needed; None if it is empty, as most slices of a large network are."""
    if not pool.spec.allocations and not pool.is_miscounted:
        return None
    name = pool.metadata.name
    return IPPoolSnapshot(
        name=name,
        range=pool_range(pool),
        belonging=known.of_pool(pool),
        entries=tuple(
            PoolEntry(name, key, allocation_of(entry)) for key, entry in pool.spec.allocations.items()
        ),
        is_miscounted=pool.is_miscounted,
    )


async def _list(cluster: Cluster, kind: type[R], namespace: str, keep: Callable[[R], T | None]) -> list[T]:
    try:
        return await list_kept(cluster, kind, namespace, keep=keep)
    except NotFound:  # a cluster without secondary networks need not know the kind
        return []
