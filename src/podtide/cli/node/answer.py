"""What `podtide node` shows: the node's pool, the arithmetic of its request, and its slices. No I/O."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from podtide.allocator.quarantine import Quarantined
from podtide.cli.observed.network import ObservedNetwork
from podtide.cli.observed.node import ObservedNode
from podtide.cli.output.suggested_commands import SuggestedCommands
from podtide.cli.why.chain import build_chain
from podtide.cli.why.facts import WhyFacts
from podtide.cli.why.right_request import right_request
from podtide.resources.conditions import Condition
from podtide.resources.node_network_config import NetworkContainer


class ContainerLine(Struct, frozen=True, kw_only=True):
    """What the node has of one subnet. Primaries are not in any of the counts."""

    network: str
    subnet: str
    cidr: str
    primary: str
    held: int
    on_pods: int
    idle: int
    """Held for the next pods."""
    releasing: int
    """Given back, and not released yet."""
    owed: int
    version: int
    container: str


class SliceLine(Struct, frozen=True, kw_only=True):
    """A slice of a secondary network that is the node's."""

    network: str
    slice: str
    pool: str
    """"" while it has none, before its first use."""
    capacity: int
    held: int
    leaked: int
    quarantined_since: str = ""
    """When its former Node was found to be deleted; "" if it is in use."""


class NodeAnswer(Struct, frozen=True, kw_only=True):
    """Everything about one node. A count is None where only the allocator knows it and was not asked."""

    name: str
    headline: str
    """What is so, and what happens next or what a person should do."""
    demand: int
    pods_with_address: int
    waiting_pods: tuple[str, ...]
    requested: int
    should_request: int | None
    """None if nothing says what is in force."""
    parameters: str
    arithmetic: tuple[str, ...]
    """How the request follows from the demand."""
    held: int
    releasing: int
    owed: int
    quarantined: int | None
    """Addresses that earlier nodes of this name left."""
    containers: tuple[ContainerLine, ...]
    slices: tuple[SliceLine, ...]
    without_slice: tuple[str, ...]
    """Ranges of secondary networks that the node has no slice of, as `network range`."""
    conditions: tuple[Condition, ...]
    not_asked: str = ""


def describe_node(
    facts: WhyFacts,
    networks: Iterable[ObservedNetwork],
    left: Iterable[Quarantined] | None,
    commands: SuggestedCommands,
    not_asked: str = "",
) -> NodeAnswer:
    """The answer. `left` is what removed nodes left at the allocator; None if it was not asked."""
    node, right = facts.observed, right_request(facts)
    networks = tuple(networks)
    lines = tuple(_container_line(node, container) for container in node.containers)
    return NodeAnswer(
        name=node.name,
        headline=build_chain(facts, commands).headline,
        demand=node.demand,
        pods_with_address=len(node.served),
        waiting_pods=tuple(str(pod.key) for pod in node.waiting),
        requested=node.requested,
        should_request=right.count if right else None,
        parameters=right.parameters if right else "",
        arithmetic=right.decision.steps() if right else (),
        held=node.held,
        releasing=sum(line.releasing for line in lines),
        owed=node.owed,
        quarantined=None
        if left is None
        else sum(len(each.addresses) for each in left if each.node == node.name),
        containers=lines,
        slices=tuple(_slices(node.name, networks)),
        without_slice=tuple(
            f"{network.name} {each.cidr}"
            for network in networks
            for each in network.ranges
            if node.name in each.nodes_without
        ),
        conditions=tuple(node.config.status.conditions) if node.config else (),
        not_asked=not_asked,
    )


def _container_line(node: ObservedNode, container: NetworkContainer) -> ContainerLine:
    in_use = node.addresses_in_use
    kept = [entry for entry in container.ip_assignments if entry.name not in node.named]
    on_pods = sum(entry.ip in in_use for entry in kept)
    return ContainerLine(
        network=container.vnet_id,
        subnet=container.subnet_name,
        cidr=container.subnet_address_space or container.subnet_address_space_v6,
        primary=container.primary_ip or container.primary_ipv6,
        held=len(container.ip_assignments),
        on_pods=on_pods,
        idle=len(kept) - on_pods,
        releasing=len(container.ip_assignments) - len(kept),
        owed=node.owed_in(container),
        version=container.version,
        container=container.id,
    )


def _slices(name: str, networks: Iterable[ObservedNetwork]) -> Iterator[SliceLine]:
    for network in networks:
        pools = {pool.range: pool for pool in network.pools if pool.node == name}
        listed = {slice_ for each in network.ranges if (slice_ := each.slices.get(name))}
        for slice_ in sorted({*pools, *listed}):
            pool = pools.get(slice_)
            yield SliceLine(
                network=network.name,
                slice=slice_,
                pool=pool.name if pool else "",
                capacity=pool.capacity if pool else 0,
                held=len(pool.holders) if pool else 0,
                leaked=sum(leak.pool == pool.name for leak in network.leaks) if pool else 0,
                quarantined_since=pool.node_gone_since if pool else "",
            )
