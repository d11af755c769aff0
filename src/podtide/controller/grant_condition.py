"""The condition of a NodeNetworkConfig that says whether its node has what it asked for. No I/O.

It is written with the status after every answer of the allocator, and read by all that explain a node's want of addresses.
"""

from enum import StrEnum

from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.node_network_config import NodeNetworkConfig

GRANTED = "Granted"
"""The condition: whether the node has all it asked for."""


class GrantReason(StrEnum):
    """Why a node has, or has not, what it asked for; ordered by severity, the worst last."""

    COMPLETE = "Complete"
    SHORT = "SubnetShort"
    FULL = "SubnetFull"
    UNAVAILABLE = "AllocatorUnavailable"
    RECOVERING = "AllocatorRecovering"
    STALE = "StaleWish"
    REFUSED = "Refused"
    NOT_ALLOWED = "NotAllowed"
    ANOTHER_CLUSTER = "AnotherCluster"
    NO_SUCH_SUBNET = "NoSuchSubnet"


def condition_of(config: NodeNetworkConfig, kind: str) -> Condition | None:
    """The condition of that type; None if there is none."""
    return next((each for each in config.status.conditions if each.type == kind), None)


def has_all_requested(config: NodeNetworkConfig) -> bool:
    """Whether its status says that the node has all it asks for in its present generation."""
    granted = condition_of(config, GRANTED)
    return (
        granted is not None
        and granted.status == ConditionStatus.TRUE
        and granted.observed_generation == config.metadata.generation
    )
