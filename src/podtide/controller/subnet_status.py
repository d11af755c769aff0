"""What a ClusterSubnet's status says, and when it is worth saying. Decides only.

Every agent of the subnet watches the object, so each write of it reaches thousands of nodes. What agents go by (the
scaler, and whether the subnet is exhausted or starved) is written when it changes, and so are CIDRs, capacity and
conditions. `reserved` is for people: it goes along with such a write, and by itself only when it has moved by a
hundredth of the capacity and nothing was written for half a minute. The exact number is the allocator's, and a metric.
"""

from collections.abc import Iterable
from fractions import Fraction

from msgspec import structs

from podtide.allocator.port import Subnet
from podtide.resources.cluster_subnet import ClusterSubnetStatus, ScalerInForce, SubnetCidr
from podtide.resources.conditions import Condition, with_condition

_TELL_EVERY_SECONDS = 30.0
_WORTH_TELLING = 100
"""The part of its capacity by which a subnet's reserved count must move, as a divisor."""


def subnet_status(
    before: ClusterSubnetStatus, subnet: Subnet, conditions: Iterable[Condition]
) -> ClusterSubnetStatus:
    """The subnet as it is now, with what is in force."""
    in_force = subnet.in_force
    all_conditions = before.conditions
    for condition in conditions:
        all_conditions = with_condition(all_conditions, condition)
    return ClusterSubnetStatus(
        cidr=subnet.cidrs[0],
        cidrs=[
            SubnetCidr(cidr=cidr, gateway=gateway, draining=cidr in subnet.draining)
            for cidr, gateway in zip(subnet.cidrs, subnet.gateways, strict=True)
        ],
        capacity=subnet.capacity,
        reserved=subnet.reserved,
        exhausted=in_force.exhausted,
        starved=in_force.starved,
        scaler=ScalerInForce(batch=in_force.batch, buffer=float(Fraction(in_force.buffer)), top=in_force.top),
        conditions=all_conditions,
    )


def is_worth_writing(before: ClusterSubnetStatus, now: ClusterSubnetStatus, *, silent_seconds: float) -> bool:
    """Whether the status is to be written, where nothing was for so long."""
    if structs.replace(now, reserved=before.reserved) != before:
        return True
    moved = abs(now.reserved - before.reserved)
    return silent_seconds >= _TELL_EVERY_SECONDS and moved > 0 and moved * _WORTH_TELLING >= now.capacity
