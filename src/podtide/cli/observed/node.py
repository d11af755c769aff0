"""A node as the cluster's objects show it: what its pods need, what it asks for, what it was granted.

`podtide top`, `why` and `check` all read a node this way, so that no two of them count differently.
"""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig
from podtide.resources.pod import Pod


class ObservedNode(Struct, frozen=True, kw_only=True):
    """One node, at one instant."""

    name: str
    config: NodeNetworkConfig | None
    """None if there is none: the controller has not created it yet, or the node is deleted."""
    pods: tuple[Pod, ...]
    """All pods bound to the node."""

    @property
    def served(self) -> tuple[Pod, ...]:
        """Pods that show an address of their own."""
        return tuple(pod for pod in self.pods if shown_addresses(pod))

    @property
    def waiting(self) -> tuple[Pod, ...]:
        """Pods that need an address and show none."""
        return tuple(pod for pod in self.pods if pod_on_node(pod).needs_address and not shown_addresses(pod))

    @property
    def demand(self) -> int:
        """U, as the node's agent counts it, as far as pods show it."""
        return len(self.served) + len(self.waiting)

    @property
    def addresses_in_use(self) -> frozenset[str]:
        """The addresses that its pods show."""
        return frozenset(ip for pod in self.served for ip in shown_addresses(pod))

    @property
    def containers(self) -> tuple[NetworkContainer, ...]:
        """Its network containers, one per subnet."""
        return tuple(self.config.status.network_containers) if self.config else ()

    @property
    def requested(self) -> int:
        """The request, which counts for each container."""
        return self.config.spec.requested_ip_count if self.config else 0

    @property
    def named(self) -> frozenset[str]:
        """The names of addresses that it gives back."""
        return frozenset(self.config.spec.ips_not_in_use) if self.config else frozenset()

    @property
    def held(self) -> int:
        """The number of its secondary addresses, over all containers."""
        return sum(len(container.ip_assignments) for container in self.containers)

    @property
    def owed(self) -> int:
        """The number of addresses that it asks for and has not been granted, over all containers."""
        return sum(self.owed_in(container) for container in self.containers)

    def free_in(self, subnet: str) -> int:
        """The number of addresses of a subnet that it holds, does not give back, and none of its pods shows."""
        in_use = self.addresses_in_use
        return sum(
            entry.name not in self.named and entry.ip not in in_use
            for container in self.containers
            if container.subnet_name == subnet
            for entry in container.ip_assignments
        )

    @property
    def free(self) -> int:
        """For how many more pods it has addresses now: a pod needs one of each container."""
        return min((self.free_in(each.subnet_name) for each in self.containers), default=0)

    def owed_in(self, container: NetworkContainer) -> int:
        """The number of addresses it is owed in one container; those that it gives back do not count as held."""
        kept = sum(entry.name not in self.named for entry in container.ip_assignments)
        return max(0, self.requested - kept)


def observe_nodes(configs: Iterable[NodeNetworkConfig], pods: Iterable[Pod]) -> tuple[ObservedNode, ...]:
    """All nodes that have a NodeNetworkConfig or a pod, sorted by name."""
    by_name = {config.metadata.name: config for config in configs}
    bound: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.node_name:
            bound[pod.spec.node_name].append(pod)
    return tuple(
        ObservedNode(name=name, config=by_name.get(name), pods=tuple(bound.get(name, ())))
        for name in sorted({*by_name, *bound})
    )
