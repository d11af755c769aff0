"""What `podtide migrate cns` reads of a cluster: NodeNetworkConfigs, Nodes and Pods, as the core's take-over wants them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from podtide.allocator.subnets import Subnet
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.core.subnet.take_over import (
    GivenAddress,
    GivenContainer,
    GivenNode,
    ShownPod,
    SubnetDefinition,
)
from podtide.networks.pods import has_ended
from podtide.resources.foreign_config import has_foreign_containers, is_foreign
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    AssignmentMode,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
)
from podtide.resources.pod import Pod

CNS_LABEL = ("k8s-app", "azure-cns")
"""The label of Azure CNS' own pods."""
AGENT_LABELS = (("app.kubernetes.io/name", "podtide"), ("app.kubernetes.io/component", "agent"))
"""The labels of podtide's agents, as the chart has them."""


class CnsSituation(Struct, frozen=True, kw_only=True):
    """The objects of a cluster, read in this order: what a node may hand out is read before the pods that have it."""

    configs: tuple[NodeNetworkConfig, ...]
    nodes: dict[str, Node]
    """By name."""
    pods: dict[str, tuple[Pod, ...]]
    """Living ones by node."""

    @property
    def foreign(self) -> tuple[NodeNetworkConfig, ...]:
        """The NodeNetworkConfigs that another program serves."""
        return tuple(config for config in self.configs if is_foreign(config))

    def given(self, config: NodeNetworkConfig) -> GivenNode:
        """What a NodeNetworkConfig says its node was given."""
        return self.given_by(config, config.status.network_containers, config.spec)

    def given_by(
        self,
        config: NodeNetworkConfig,
        containers: Iterable[NetworkContainer],
        spec: NodeNetworkConfigSpec,
    ) -> GivenNode:
        """The same by containers and a request of another time."""
        name = config.metadata.name
        node = self.nodes.get(name)
        return GivenNode(
            name=name,
            uid=node.metadata.uid if node else "",
            owner=config.node_uid,
            containers=tuple(_container(each) for each in containers if each.id),
            given_up=frozenset(spec.ips_not_in_use),
            pods=self.shown_on(name),
        )

    def shown_on(self, node: str) -> tuple[ShownPod, ...]:
        """The living pods of a node that show addresses of their own."""
        pods = [
            ShownPod(str(pod.key), tuple(each.ip for each in pod.status.pod_ips) or (pod.status.pod_ip,))
            for pod in self.pods.get(node, ())
            if not pod.spec.host_network
        ]
        return tuple(pod for pod in pods if any(pod.addresses))

    def pods_with(self, *labels: tuple[str, str]) -> dict[str, str]:
        """Living pods with these labels: one of each node, by the node's name."""
        return {
            node: str(pod.key)
            for node, pods in self.pods.items()
            for pod in pods
            if all(pod.metadata.labels.get(label) == value for label, value in labels)
        }


async def read_situation(cluster: Cluster) -> CnsSituation:
    """Read a cluster."""
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    nodes = await list_all(cluster, Node)
    pods = defaultdict[str, list[Pod]](list)
    for pod in await list_all(cluster, Pod):
        if pod.spec.node_name and not has_ended(pod):
            pods[pod.spec.node_name].append(pod)
    return CnsSituation(
        configs=tuple(sorted(configs, key=lambda config: config.metadata.name)),
        nodes={node.metadata.name: node for node in nodes},
        pods={name: tuple(there) for name, there in pods.items()},
    )


def defined(subnets: Sequence[Subnet]) -> list[SubnetDefinition]:
    """The allocator's subnets, as the core's take-over wants them."""
    return [
        SubnetDefinition(
            name=subnet.name,
            cidrs=subnet.cidrs,
            gateways=tuple(filter(None, subnet.gateways)),
            keep_back=subnet.keep_back,
            keep_back_first=subnet.keep_back_first,
        )
        for subnet in subnets
    ]


def is_handed_over(config: NodeNetworkConfig) -> bool:
    """Whether podtide serves the node."""
    return bool(config.status.network_containers) and not has_foreign_containers(config)


def _container(container: NetworkContainer) -> GivenContainer:
    return GivenContainer(
        id=container.id,
        subnet=container.subnet_name,
        cidr=container.subnet_address_space or container.subnet_address_space_v6,
        gateway=container.default_gateway or container.default_gateway_v6,
        primary=container.primary_ip or container.primary_ipv6,
        addresses=tuple(GivenAddress(each.name, each.ip) for each in container.ip_assignments),
        is_static=container.assignment_mode is not AssignmentMode.DYNAMIC,
    )
