"""The status of a ClusterSubnet, and when a change of it is worth a write. No I/O.

Every agent of the subnet watches the object, so each write of it reaches thousands of nodes. What agents read (the
scaler, and whether the subnet is exhausted or starved) is written when it changes, and so are CIDR, capacity and
conditions. `reserved` is for people, who must not read 0 where nodes hold sixty. It is written along with the others,
and by itself

    when it is off by an eighth of what is reserved   at the next reconcile: from one address to any number that is a few
                                                      dozen writes, once
    when it is off by a hundredth of the capacity     if nothing was written for half a minute
    when it is off at all                             once it has not changed for half a minute

So in a subnet at rest it is exact, and an idle cluster writes nothing. The exact number at any time is the allocator's,
and a metric.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from msgspec import structs

from podtide.allocator.subnets import Subnet
from podtide.core.subnet.exhaustion import Thresholds
from podtide.resources.cluster_subnet import (
    ClusterSubnetStatus,
    ScalerInForce,
    SubnetCidr,
    ThresholdsInForce,
)
from podtide.resources.conditions import Condition, ConditionStatus, with_condition

IN_REACH = "AllocatorReachable"
"""The condition: whether the allocator answers. Set once it did not."""

_TELL_EVERY_SECONDS = 30.0
_AT_REST_SECONDS = 30.0
_PART_OF_CAPACITY = 100
_PART_OF_RESERVED = 8
"""By which part of capacity and of reserved the shown number may be off for a while, as divisors."""


def subnet_status(
    before: ClusterSubnetStatus,
    subnet: Subnet,
    thresholds: Thresholds,
    conditions: Iterable[Condition],
    runs_out: str = "",
) -> ClusterSubnetStatus:
    """The status with what was read, what is in force, and the day on which the subnet runs out."""
    in_force = subnet.in_force
    all_conditions = before.conditions
    for condition in conditions:
        all_conditions = with_condition(all_conditions, condition)
    return ClusterSubnetStatus(
        cidr=subnet.cidrs[0],
        ranges=",".join(subnet.cidrs),
        cidrs=[
            SubnetCidr(cidr=cidr, gateway=gateway, draining=cidr in subnet.draining)
            for cidr, gateway in zip(subnet.cidrs, subnet.gateways, strict=True)
        ],
        capacity=subnet.capacity,
        reserved=subnet.reserved,
        exhausted=in_force.exhausted,
        starved=in_force.starved,
        runs_out=runs_out,
        scaler=ScalerInForce(batch=in_force.batch, buffer=float(Fraction(in_force.buffer)), top=in_force.top),
        thresholds=ThresholdsInForce(lower=float(thresholds.lower), upper=float(thresholds.upper)),
        conditions=all_conditions,
    )


def is_worth_writing(
    before: ClusterSubnetStatus, now: ClusterSubnetStatus, *, silent_seconds: float, resting_seconds: float
) -> bool:
    """Whether the status is to be written.

    Nothing was written for `silent_seconds`, and `reserved` has not changed for `resting_seconds`.
    """
    if structs.replace(now, reserved=before.reserved) != before:
        return True
    off = abs(now.reserved - before.reserved)
    if off == 0:
        return False
    if off * _PART_OF_RESERVED >= max(now.reserved, before.reserved):
        return True
    if off * _PART_OF_CAPACITY >= now.capacity and silent_seconds >= _TELL_EVERY_SECONDS:
        return True
    return resting_seconds >= _AT_REST_SECONDS


def out_of_reach_condition(before: ClusterSubnetStatus, error: str, generation: int, now: str) -> Condition:
    """The condition that the allocator does not answer. Error texts differ with each attempt; the first one is kept."""
    shown = _reach_in(before)
    is_told = shown is not None and shown.status == ConditionStatus.FALSE
    return Condition(
        type=IN_REACH,
        status=ConditionStatus.FALSE,
        last_transition_time=now,
        reason="AllocatorUnavailable",
        message=shown.message if shown is not None and is_told else error,
        observed_generation=generation,
    )


def reach_conditions(before: ClusterSubnetStatus, generation: int, now: str) -> Iterator[Condition]:
    """The condition that the allocator answers again, if it was said before that it does not."""
    if _reach_in(before) is not None:
        yield Condition(
            type=IN_REACH,
            status=ConditionStatus.TRUE,
            last_transition_time=now,
            reason="Answering",
            message="the allocator answers",
            observed_generation=generation,
        )


def _reach_in(status: ClusterSubnetStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == IN_REACH), None)
