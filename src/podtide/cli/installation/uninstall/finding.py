"""Reads what podtide has in a cluster, for `core.removal` to decide on. It only reads."""

import asyncio

from msgspec import Struct

from podtide.cli.installation.uninstall.remover import REMOVER
from podtide.cli.placement.removal import traces
from podtide.cluster.listing import list_all, list_if_known
from podtide.cluster.port import Cluster, NotFound
from podtide.controller.program import LEASE
from podtide.core.removal import FoundDefinition, FoundObject, InstalledParts, LivingPod
from podtide.networks.migration import WHEREABOUTS
from podtide.networks.pods import has_ended
from podtide.resources.installed_kinds import (
    CHART_KINDS,
    INSTALLED_CUSTOM_KINDS,
    DaemonSet,
    Installed,
    InstalledDefinition,
    InstalledLease,
)
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import CONTAINER_FINALIZER, NAME_LABEL, NODE_ANNOTATION, PODTIDE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod

AGENTS = ("podtide-agent", "podtide-remover")
"""The DaemonSets of the chart: the agents, and what `cni.remove` puts in their place."""
_RELEASE = "meta.helm.sh/release-name"
_LABELLED = f"{NAME_LABEL}={PODTIDE}"


class FoundCluster(Struct, frozen=True, kw_only=True):
    """What is decided on, and the DaemonSets that carrying it out begins with."""

    situation: InstalledParts
    agents: tuple[DaemonSet, ...]
    remover: DaemonSet | None
    namespace: str
    """The installation's."""
    release: str = ""
    """What Helm calls it; "" where Helm did not install it."""


async def find(cluster: Cluster) -> FoundCluster:
    """Read all that podtide has in the cluster."""
    by_kind = await asyncio.gather(*(labelled(cluster, kind) for kind in CHART_KINDS))
    items = [item for of_kind in by_kind for item in of_kind]
    objects = [_found(item) for item in items if not _goes_with_its_owner(item)] + await _leases(cluster)
    definitions = await _definitions(cluster)
    own = {str(each) for kind in definitions for each in kind.objects if each.is_own}
    daemon_sets = (await cluster.list(DaemonSet, labels=_LABELLED)).items
    agents = tuple(item for item in daemon_sets if item.metadata.name in AGENTS)
    remover = next((item for item in daemon_sets if item.metadata.name == REMOVER), None)
    pools = [item for item in await list_if_known(cluster, IPPool) if f"IPPool {item.key}" in own]
    return FoundCluster(
        situation=InstalledParts(
            objects=tuple(each for each in objects if each.name != REMOVER),
            definitions=definitions,
            pods=tuple(await _living_pods(cluster)),
            granted=await _granted(cluster),
            pods_in_pools=frozenset(
                entry.podref for pool in pools for entry in pool.spec.allocations.values()
            ),
            nodes_with_traces=tuple(each.node for each in await traces(cluster)),
            has_agents=bool(agents),
            has_remover=remover is not None,
        ),
        agents=agents,
        remover=remover,
        namespace=_namespace_of([*agents, *daemon_sets], objects),
        release=next(filter(None, (item.metadata.annotations.get(_RELEASE, "") for item in items)), ""),
    )


async def labelled(cluster: Cluster, kind: type[Installed]) -> list[Installed]:
    """All objects of a kind with podtide's label; none if the cluster does not know the kind."""
    try:
        return (await cluster.list(kind, labels=_LABELLED)).items
    except NotFound:
        return []


async def _leases(cluster: Cluster) -> list[FoundObject]:
    """Leases without the label: of pools of secondary networks, and the leader's where no chart made it."""
    return [
        _found(item, is_marked=True)
        for item in await list_all(cluster, InstalledLease)
        if not item.is_labelled and (NODE_ANNOTATION in item.metadata.annotations or item.key == LEASE)
    ]


async def _definitions(cluster: Cluster) -> tuple[FoundDefinition, ...]:
    there = {item.metadata.name: item for item in await list_all(cluster, InstalledDefinition)}
    whereabouts = await _networks_of_whereabouts(cluster)
    found = []
    for kind in INSTALLED_CUSTOM_KINDS:
        definition = there.get(f"{kind.api.plural}.{kind.api.group}")
        if definition is None:
            continue
        objects = [
            _found(item, is_marked=CONTAINER_FINALIZER in item.metadata.finalizers)
            for item in await list_if_known(cluster, kind)
        ]
        found.append(
            FoundDefinition(
                name=definition.metadata.name,
                is_labelled=definition.is_labelled,
                objects=tuple(objects),
                users=whereabouts if kind.api.group == IPPool.api.group else (),
            )
        )
    return tuple(found)


async def _networks_of_whereabouts(cluster: Cluster) -> tuple[str, ...]:
    """Definitions of networks that have their addresses from Whereabouts."""
    return tuple(
        f"NetworkAttachmentDefinition {item.key}"
        for item in await list_if_known(cluster, NetworkAttachmentDefinition)
        if f'"{WHEREABOUTS}"' in item.spec.config  # whether or not it can be read
    )


async def _granted(cluster: Cluster) -> frozenset[str]:
    return frozenset(
        assignment.ip
        for config in await list_if_known(cluster, NodeNetworkConfig)
        if CONTAINER_FINALIZER in config.metadata.finalizers
        for container in config.status.network_containers
        for assignment in container.ip_assignments
    )


async def _living_pods(cluster: Cluster) -> list[LivingPod]:
    return [
        LivingPod(
            name=str(pod.key),
            node=pod.spec.node_name,
            addresses=frozenset({pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips)} - {""}),
        )
        for pod in await list_all(cluster, Pod)
        if not has_ended(pod) and not pod.spec.host_network
    ]


def _goes_with_its_owner(item: Installed) -> bool:
    """Whether this is a pod that a controller makes again until that is deleted."""
    return item.api.kind == Pod.api.kind and bool(item.metadata.owner_references)


def _found(item: Installed, *, is_marked: bool = False) -> FoundObject:
    return FoundObject(
        kind=item.api.kind,
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        is_labelled=item.is_labelled,
        is_marked=is_marked,
        writers=frozenset(each.manager for each in item.metadata.managed_fields),
    )


def _namespace_of(daemon_sets: list[DaemonSet], objects: list[FoundObject]) -> str:
    """Where podtide's programs are, by its DaemonSets, else by its accounts."""
    accounts = [each.namespace for each in objects if each.kind == "ServiceAccount"]
    return next((item.metadata.namespace for item in daemon_sets), next(iter(accounts), LEASE.namespace))
