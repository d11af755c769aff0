"""What a ClusterSubnet's status says, and when it is worth saying. Decides only.

Every agent of the subnet watches the object, so each write of it reaches thousands of nodes. What agents go by (the
scaler, and whether the subnet is exhausted or starved) is written when it changes, and so are CIDR, capacity and
conditions. `reserved` is for people: it goes along with such a write, and by itself only when it has moved by a
hundredth of the capacity and nothing was written for a dwell. The exact number is the allocator's, and a metric.
"""

from msgspec import structs

from podtide.allocator.port import Subnet
from podtide.core.batching import SubnetDecision
from podtide.resources.cluster_subnet import ClusterSubnetStatus, ScalerInForce
from podtide.resources.conditions import Condition, with_condition

_WORTH_TELLING = 100
"""The part of its capacity by which a subnet's reserved count must move, as a divisor."""


def subnet_status(
    before: ClusterSubnetStatus, subnet: Subnet, decision: SubnetDecision, condition: Condition
) -> ClusterSubnetStatus:
    """The subnet as it was read and decided."""
    return ClusterSubnetStatus(
        cidr=subnet.cidrs[0],
        capacity=subnet.capacity,
        reserved=subnet.reserved,
        exhausted=decision.standing.exhausted,
        starved=decision.standing.starved,
        scaler=ScalerInForce(batch=decision.scaler.batch, buffer=float(decision.scaler.buffer)),
        conditions=with_condition(before.conditions, condition),
    )


def is_worth_writing(before: ClusterSubnetStatus, now: ClusterSubnetStatus, *, dwelt: bool) -> bool:
    """Whether the status is to be written; `dwelt` says that nothing was for a dwell."""
    if structs.replace(now, reserved=before.reserved) != before:
        return True
    moved = abs(now.reserved - before.reserved)
    return dwelt and moved > 0 and moved * _WORTH_TELLING >= now.capacity
