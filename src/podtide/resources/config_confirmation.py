"""A node's doubt whether its NodeNetworkConfig is of the present, and the controller's answer to it.

An etcd that is restored brings back objects that were gone, as they were: nothing in such an object tells what became
of its addresses meanwhile. So an agent that saw its object go, and sees it again, writes a mark on it that nobody ever
used; and the controller repeats the mark in the status in which it shows what the allocator has after the mark was
read. No past contains that answer.
"""

from collections.abc import Mapping

from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.metadata_keys import DOUBT_ANNOTATION
from podtide.resources.node_network_config import NodeNetworkConfig

CONFIRMED = "Confirmed"
"""The condition: that the status is of the present. Said only once an agent asked, and of its last question."""
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
