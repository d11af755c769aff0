"""Where a subnet's batch comes to rest by itself, given what its nodes need: `decide_batch`, again and again.

The rule that runs in the controller is asked until it changes nothing. Every node has then answered, so that what it
states is its demand, and whatever of its request there is no room for is owed to it.
"""

from collections import Counter
from fractions import Fraction
from math import inf

from msgspec import Struct

from podtide.core.plan.node_loads import NodeLoads
from podtide.core.subnet.batch import BatchInForce, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.statement import Statement, request_at, stated_demand


class SettledBatch(Struct, frozen=True, kw_only=True):
    """The batch at which the subnet is at rest, and what that takes of it."""

    scaler: SubnetScaler
    exhausted: bool
    starved: bool
    reserved: int
    owed: int

    @property
    def standing(self) -> BatchInForce:
        """The same as what is in force, for long."""
        return BatchInForce(
            scaler=self.scaler, exhausted=self.exhausted, starved=self.starved, age_seconds=inf
        )


class PlannedSubnet(Struct, frozen=True, kw_only=True):
    """What a subnet has, beside the loads of its nodes, from which its batch follows."""

    bounds: BatchBounds
    capacity: int
    max_ips: int
    ungoverned: int = 0
    """Addresses that no batch governs."""


def settle(loads: NodeLoads, subnet: PlannedSubnet, standing: BatchInForce | None = None) -> SettledBatch:
    """Where the batch comes to rest: from the top, or from what was in force before."""
    bounds, capacity, ungoverned = subnet.bounds, subnet.capacity, subnet.ungoverned
    in_force = standing or BatchInForce(scaler=bounds.rungs[-1], age_seconds=inf)

    def decide() -> SettledBatch:
        holdings = _holdings(loads, in_force.scaler or bounds.rungs[-1], bounds.top, subnet.max_ips)
        wanted = ungoverned + sum(each.taken * count for each, count in holdings.items())
        reading = SubnetReading(
            capacity=capacity,
            reserved=min(capacity, wanted),
            containers=sum(holdings.values()),
            owed=max(0, wanted - capacity),
            ungoverned=ungoverned,
            holdings=holdings,
        )
        decision = decide_batch(in_force, reading, bounds)
        return SettledBatch(
            scaler=decision.scaler,
            exhausted=decision.exhausted,
            starved=decision.starved,
            reserved=reading.reserved,
            owed=reading.owed,
        )

    # It ends: at constant demand the batch changes twice at most, and starved begins and ends once.
    while (settled := decide()).standing != in_force:
        in_force = settled.standing
    return settled


def _holdings(loads: NodeLoads, scaler: SubnetScaler, top: int, max_ips: int) -> Counter[ContainerDemand]:
    """What the nodes state and take by a batch, each with one network container in the subnet."""
    holdings: Counter[ContainerDemand] = Counter()
    for pods, count in loads.items():
        by = Scaler(min(scaler.batch, max_ips), Fraction(scaler.buffer), max_ips)
        request = request_at(pods, by, 1)
        statement = Statement(
            demand=pods,
            batch=by.batch,
            buffer=by.buffer,
            max_ips=max_ips,
            primaries=1,
            request=request,
            top=top,
        )
        holdings[ContainerDemand(stated_demand(statement), 1 + request)] += count
    return holdings
