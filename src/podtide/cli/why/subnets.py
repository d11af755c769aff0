"""What is known of the subnets behind a node: by their objects, by the nodes that hold addresses, and by the allocator.

R is the allocator's. Where it is not asked, a ClusterSubnet's `reserved` may be half a minute old, and what nodes show to
have is the least that it can be.
"""

from collections.abc import Iterable

from msgspec import Struct, structs

from podtide.allocator.port import Allocator, AllocatorError, Subnet
from podtide.cli.cluster_lists import get_if_there, list_all
from podtide.cli.observed_node import ObservedNode, observe_nodes
from podtide.cluster.port import Cluster
from podtide.controller.subnets.status import IN_REACH
from podtide.core.errors import InvalidInput
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.resources.statement_annotation import statement_in


class SubnetFacts(Struct, frozen=True, kw_only=True):
    """What is known of one subnet; its objects may be missing."""

    name: str
    network: str
    subnet: ClusterSubnet | None
    state: ClusterSubnetState | None
    holders: tuple[ObservedNode, ...]
    """Every node with a container in the subnet; with its pods only where the subnet is full."""
    at_allocator: Subnet | None = None
    """None where the allocator was not asked, or could not be."""
    allocator_error: AllocatorError | InvalidInput | None = None
    """Why it could not. That the request controller can is another matter: it goes another way."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the subnet runs low; its ClusterSubnet goes before its ClusterSubnetState."""
        if self.subnet is not None and self.subnet.is_judged:
            return self.subnet.status.exhausted or self.subnet.status.starved
        return self.state is not None and self.state.status is not None and self.state.status.exhausted

    @property
    def capacity(self) -> int | None:
        """Q; None where nothing tells."""
        if self.at_allocator is not None:
            return self.at_allocator.capacity
        return self.subnet.status.capacity if self.subnet is not None and self.subnet.is_judged else None

    @property
    def shown(self) -> int:
        """What this cluster's nodes show to have, primaries included: R is no less."""
        return sum(
            1 + len(container.ip_assignments)
            for holder in self.holders
            for container in holder.containers
            if container.subnet_name == self.name
        )

    @property
    def reserved(self) -> int:
        """R, as fresh as it is known."""
        if self.at_allocator is not None:
            return self.at_allocator.reserved
        return max(self.subnet.status.reserved if self.subnet is not None else 0, self.shown)

    @property
    def source(self) -> str:
        """Who says what is reserved."""
        if self.at_allocator is not None:
            return "by the allocator"
        if self.out_of_reach is not None:
            return "before the allocator stopped answering"
        if self.subnet is not None and self.subnet.status.reserved >= self.shown:
            return f"by ClusterSubnet {self.name}, at most half a minute ago"
        return "at least: by what nodes show"

    @property
    def free(self) -> int | None:
        """Addresses nobody holds; None where nothing tells."""
        return None if self.capacity is None else max(0, self.capacity - self.reserved)

    @property
    def elsewhere(self) -> int:
        """What is reserved and no node of this cluster shows: other clusters', and in quarantine."""
        return max(0, self.reserved - self.shown)

    @property
    def out_of_reach(self) -> Condition | None:
        """That the request controller does not reach the allocator, where it says so."""
        conditions = self.subnet.status.conditions if self.subnet is not None else []
        return next(
            (each for each in conditions if each.type == IN_REACH and each.status == ConditionStatus.FALSE),
            None,
        )

    def owed(self) -> dict[str, int]:
        """How many addresses of the subnet each node is owed; those that are owed none are left out."""
        owed = {
            holder.name: sum(
                holder.owed_in(container)
                for container in holder.containers
                if container.subnet_name == self.name
            )
            for holder in self.holders
        }
        return {name: count for name, count in owed.items() if count}

    def idle(self) -> dict[str, int]:
        """How many addresses nodes hold for no pod and do not give back, most first. Only where pods were read."""
        idle = {holder.name: holder.free_in(self.name) - len(holder.waiting) for holder in self.holders}
        return dict(sorted(((n, c) for n, c in idle.items() if c > 0), key=lambda each: (-each[1], each[0])))

    def silent(self) -> list[str]:
        """Nodes whose agent has not answered the batch in force."""
        in_force = self.subnet.status.scaler if self.subnet is not None else None
        if in_force is None:
            return []
        return [holder.name for holder in self.holders if _states_more(holder, in_force.batch)]


def _states_more(holder: ObservedNode, batch: int) -> bool:
    if holder.config is None:
        return False
    statement = statement_in(holder.config.metadata.annotations, holder.requested)
    return statement is not None and statement.batch > batch


async def read_subnets(
    cluster: Cluster, node: ObservedNode, allocator: Allocator | None
) -> tuple[SubnetFacts, ...]:
    """The subnets of a node's containers, in their order."""
    networks = {container.subnet_name: container.vnet_id for container in node.containers}
    if not networks:
        return ()
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    others = observe_nodes(configs, ())
    found = []
    for name, network in networks.items():
        facts = SubnetFacts(
            name=name,
            network=network,
            subnet=await get_if_there(cluster, ClusterSubnet, name, SYSTEM_NAMESPACE),
            state=await get_if_there(cluster, ClusterSubnetState, name, SYSTEM_NAMESPACE),
            holders=_in_subnet(others, name),
        )
        found.append(await _asked(facts, allocator) if allocator else facts)
    if any(facts.free == 0 for facts in found):
        # Who holds what for nothing is read only where it matters: it takes every pod of the cluster.
        others = observe_nodes(configs, await list_all(cluster, Pod))
        found = [structs.replace(facts, holders=_in_subnet(others, facts.name)) for facts in found]
    return tuple(found)


async def _asked(facts: SubnetFacts, allocator: Allocator) -> SubnetFacts:
    try:
        return structs.replace(facts, at_allocator=await allocator.get_subnet(facts.network, facts.name))
    except (AllocatorError, InvalidInput) as error:
        return structs.replace(facts, allocator_error=error)


def _in_subnet(nodes: Iterable[ObservedNode], subnet: str) -> tuple[ObservedNode, ...]:
    return tuple(
        node for node in nodes if any(container.subnet_name == subnet for container in node.containers)
    )
