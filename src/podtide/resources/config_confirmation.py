"""An agent's question whether its NodeNetworkConfig is up to date, and the controller's answer to it.

An etcd that is restored from a backup brings back deleted objects as they were: nothing in such an object tells that it
is stale, and its addresses may belong to other nodes by now. So an agent whose object was deleted and is there again
writes a random mark on it; and the controller repeats the mark in a status that shows what the allocator has after the
mark was read. No backup can contain that answer, because the mark is new.
"""

from collections.abc import Mapping

from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.metadata_keys import DOUBT_ANNOTATION
from podtide.resources.node_network_config import NodeNetworkConfig

CONFIRMED = "Confirmed"
"""The condition that the status is up to date. It is set only after an agent asked, and answers its last question."""
_WORDS = "what is shown is what the allocator had after the node's agent asked: "


def doubt_in(annotations: Mapping[str, str]) -> str:
    """The mark by which the agent asks for a confirmation; "" when it does not."""
    return annotations.get(DOUBT_ANNOTATION, "")


def confirmation(mark: str, now: str, generation: int) -> Condition:
    """The confirmation of that mark."""
    return Condition(
        type=CONFIRMED,
        status=ConditionStatus.TRUE,
        last_transition_time=now,
        reason="AskedByAgent",
        message=f"{_WORDS}{mark}",
        observed_generation=generation,
    )


def is_confirmed(config: NodeNetworkConfig, mark: str) -> bool:
    """Whether the status confirms that mark."""
    return any(
        each.type == CONFIRMED and each.message == f"{_WORDS}{mark}" for each in config.status.conditions
    )
