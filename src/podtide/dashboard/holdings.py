"""What one NodeNetworkConfig says of its node: the record for the page, and what it adds to its subnets. No I/O.

Demand is what the agent stated along with its request. At the top batch an agent does not state every pod anew, so it may
be some pods old there (see `core.subnet.statement`), and so is what is counted as free.
"""

from ipaddress import ip_address

from msgspec import Struct

from podtide.controller.grant_condition import GRANTED, condition_of
from podtide.controller.nodes.config_status import PLACED
from podtide.core.subnet.statement import Statement
from podtide.dashboard.address_map import CellState
from podtide.dashboard.records import NodeRecord
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.metadata_keys import waiting_pods_in
from podtide.resources.node import Node
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig
from podtide.resources.statement_annotation import statement_in


class ContainerShare(Struct, frozen=True):
    """What one container adds to its subnet's counts."""

    subnet: str
    taken: int
    """Addresses, the primary included."""
    owed: int
    demand: int | None
    idle: int | None
    cidr: str
    """The range that the container states, for subnets of which no other object tells."""
    network: str


class HeldAddresses(Struct, frozen=True):
    """All of this, of one NodeNetworkConfig."""

    shares: tuple[ContainerShare, ...]
    addresses: dict[tuple[str, int], CellState]
    """By subnet and address."""
    batch: int | None
    """By which the agent computed its request; None where it stated nothing."""


NOTHING = HeldAddresses((), {}, None)


def statement_of(config: NodeNetworkConfig) -> Statement | None:
    """What the agent stated along with its present request."""
    return statement_in(config.metadata.annotations, config.spec.requested_ip_count)


def holding_of(config: NodeNetworkConfig | None) -> HeldAddresses:
    """What a node holds; nothing for one without a NodeNetworkConfig."""
    if config is None:
        return NOTHING
    statement, named = statement_of(config), frozenset(config.spec.ips_not_in_use)
    shares, addresses = [], {}
    for container in config.status.network_containers:
        subnet = container.subnet_name
        kept = sum(entry.name not in named for entry in container.ip_assignments)
        share = _share(statement)
        shares.append(
            ContainerShare(
                subnet=subnet,
                taken=len(container.ip_assignments) + (1 if _primary(container) else 0),
                owed=max(0, config.spec.requested_ip_count - kept),
                demand=share,
                idle=None if share is None else max(0, kept - share),
                cidr=container.subnet_address_space or container.subnet_address_space_v6,
                network=container.vnet_id,
            )
        )
        if (primary := address_number(_primary(container))) is not None:
            addresses[subnet, primary] = CellState.PRIMARY
        for entry in container.ip_assignments:
            if (number := address_number(entry.ip)) is not None:
                is_named = entry.name in named
                addresses[subnet, number] = CellState.RELEASING if is_named else CellState.HELD
    return HeldAddresses(tuple(shares), addresses, statement.batch if statement else None)


def node_record(name: str, node: Node | None, config: NodeNetworkConfig | None) -> NodeRecord:
    """The record of a node, of which at least one object is there."""
    if config is None:
        return NodeRecord(
            name=name,
            message="it has no NodeNetworkConfig: the request controller makes one; see that it runs",
            since=node.metadata.creation_timestamp if node else None,
        )
    statement, named = statement_of(config), frozenset(config.spec.ips_not_in_use)
    containers = config.status.network_containers
    kept = [sum(entry.name not in named for entry in each.ip_assignments) for each in containers]
    held = sum(len(each.ip_assignments) for each in containers)
    share = _share(statement)
    granted = condition_of(config, GRANTED)
    trouble = _trouble(node, config, granted)
    return NodeRecord(
        name=name,
        subnets=tuple(each.subnet_name for each in containers),
        demand=statement.demand if statement else None,
        request=config.spec.requested_ip_count,
        held=held,
        primaries=sum(bool(_primary(each)) for each in containers),
        free=None if share is None else max(0, min((each - share for each in kept), default=0)),
        releasing=held - sum(kept),
        owed=sum(max(0, config.spec.requested_ip_count - each) for each in kept),
        waiting=_waiting(config, min(kept, default=0), share),
        batch=statement.batch if statement else None,
        ready=None if granted is None else granted.status == ConditionStatus.TRUE,
        message=trouble,
        since=granted.last_transition_time if granted else config.metadata.creation_timestamp,
    )


def _trouble(node: Node | None, config: NodeNetworkConfig, granted: Condition | None) -> str:
    if node is None:
        return "its Node is gone: what it had goes into quarantine"
    if granted is not None and granted.status == ConditionStatus.FALSE:
        return granted.message
    placed = condition_of(config, PLACED)
    if placed is not None and placed.status == ConditionStatus.FALSE:
        return placed.message
    if not config.status.network_containers:
        return "it has no network container yet: the request controller asks the allocator for one"
    return ""


def _waiting(config: NodeNetworkConfig, kept: int, share: int | None) -> int:
    """How many pods have no address and find none on the node.

    An agent states how many wait at the time of its request, and does not write again when they are served: so it counts
    only while the node holds less than it asks for.
    """
    if share is not None:
        return max(0, share - kept)
    return waiting_pods_in(config.metadata.annotations) if kept < config.spec.requested_ip_count else 0


def _share(statement: Statement | None) -> int | None:
    """How many pods need an address of each container; of two in one family, half of them each."""
    return None if statement is None else -(-statement.demand // max(1, statement.primaries))


def _primary(container: NetworkContainer) -> str:
    return container.primary_ip or container.primary_ipv6


def address_number(text: str) -> int | None:
    """An address as a number; None for what is not one, such as the block of a static container."""
    try:
        return int(ip_address(text))
    except ValueError:
        return None
