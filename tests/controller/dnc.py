"""NodeNetworkConfigs as DNC writes them for Azure CNS: its own ids and names, and no finalizer of podtide's."""

from collections.abc import Sequence

from msgspec import structs

from podtide.cluster.port import Cluster
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
    ScalerStatus,
)

MANAGER = "dnc-rc"


def a_container(primary: str, ips: Sequence[str], *, version: int = 1) -> NetworkContainer:
    """A network container of subnet pods, 10.1.0.0/24."""
    return NetworkContainer(
        id=f"6fe1d1c0-0000-4000-8000-{primary.replace('.', '').zfill(12)}",
        primary_ip=primary,
        subnet_name="pods",
        subnet_address_space="10.1.0.0/24",
        default_gateway="10.1.0.1",
        ip_assignments=[IPAssignment(name=name_of(ip), ip=ip) for ip in ips],
        version=version,
        node_ip="192.168.0.4",
        subscription_id="sub",
        resource_group_id="group",
        vnet_id="vnet",
        subnet_id="pods",
        status=ContainerStatus.SUCCESS,
    )


def name_of(ip: str) -> str:
    """DNC's name of an address: a GUID that tells nothing."""
    return f"b9d1fa00-0000-4000-8000-{ip.replace('.', '').zfill(12)}"


def a_status(*containers: NetworkContainer) -> NodeNetworkConfigStatus:
    """The status with these containers."""
    return NodeNetworkConfigStatus(
        assigned_ip_count=sum(len(each.ip_assignments) for each in containers),
        scaler=ScalerStatus(
            batch_size=16, request_threshold_percent=50, release_threshold_percent=150, max_ip_count=250
        ),
        status=ConfigStatus.UPDATED,
        network_containers=list(containers),
    )


async def give(
    cluster: Cluster,
    node: Node,
    primary: str,
    *ips: str,
    version: int = 1,
    given_up: Sequence[str] = (),
) -> NodeNetworkConfig:
    """The node's NodeNetworkConfig with one network container; CNS asked for what there is."""
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid, controller=True
    )
    place = ObjectMeta(name=node.metadata.name, namespace=SYSTEM_NAMESPACE, owner_references=[owner])
    spec = NodeNetworkConfigSpec(requested_ip_count=len(ips), ips_not_in_use=[name_of(ip) for ip in given_up])
    made = await cluster.create(NodeNetworkConfig(metadata=place, spec=spec), manager=MANAGER)
    return await show(cluster, made, a_container(primary, ips, version=version))


async def show(
    cluster: Cluster, config: NodeNetworkConfig, *containers: NetworkContainer
) -> NodeNetworkConfig:
    """Let the status show these containers."""
    return await cluster.replace_status(
        structs.replace(config, status=a_status(*containers)), manager=MANAGER
    )
