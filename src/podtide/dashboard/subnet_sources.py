"""A subnet's record, from everything that tells of the subnet: its objects, its nodes, the allocator. No I/O.

R is the allocator's where it was asked, else what the ClusterSubnet says, and never less than what nodes show to hold: as
`podtide top` counts it.
"""

from collections import Counter

from msgspec import Struct

from podtide.allocator.subnets import Subnet
from podtide.controller.placement.full_condition import FULL
from podtide.controller.subnets.runs_out import run_out_in
from podtide.core.exact import exact
from podtide.core.subnet.exhaustion import Thresholds
from podtide.dashboard.address_map import MapRange, map_range
from podtide.dashboard.decisions import batch_reason
from podtide.dashboard.holdings import ContainerShare, address_number
from podtide.dashboard.records import CidrRecord, RunsOutRecord, SubnetRecord, ThresholdsRecord
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.conditions import ConditionStatus

_MOST_KEPT_BACK = 4_096
"""So many addresses that are kept back one by one are shown as such."""


class SubnetSums(Struct):
    """What the containers of a subnet add up to."""

    networks: Counter[str]
    cidrs: Counter[str]
    """How many containers state each network and each range."""
    nodes: int = 0
    taken: int = 0
    owed: int = 0
    stating: int = 0
    """How many state their demand."""
    demand: int = 0
    idle: int = 0

    def add(self, share: ContainerShare, sign: int) -> None:
        """Put a container in (1), or take it out (-1)."""
        self.nodes += sign
        self.taken += sign * share.taken
        self.owed += sign * share.owed
        self.networks[share.network] += sign
        self.cidrs[share.cidr] += sign
        if share.demand is not None:
            self.stating += sign
            self.demand += sign * share.demand
            self.idle += sign * (share.idle or 0)
        if sign < 0:
            self.networks = +self.networks
            self.cidrs = +self.cidrs


class SubnetSources(Struct):
    """All that tells of one subnet."""

    name: str
    sums: SubnetSums
    subnet: ClusterSubnet | None = None
    state: ClusterSubnetState | None = None
    at_allocator: tuple[Subnet, ...] = ()
    """Those of the name, in all networks."""

    @property
    def is_gone(self) -> bool:
        """Whether nothing in the cluster tells of it any more."""
        return self.subnet is None and self.state is None and not self.sums.nodes

    @property
    def is_state_exhausted(self) -> bool:
        """Whether its ClusterSubnetState says that it is exhausted."""
        return self.state is not None and self.state.status is not None and self.state.status.exhausted

    def asked(self) -> Subnet | None:
        """The allocator's subnet in the network of the containers; without containers, if the name is unique."""
        networks = self.sums.networks
        ours = [each for each in self.at_allocator if not networks or each.network in networks]
        return ours[0] if len(ours) == 1 else None

    def cidrs(self) -> tuple[CidrRecord, ...]:
        """Its ranges: by its ClusterSubnet, else by the allocator, else as its containers state them."""
        status = self.subnet.status if self.subnet else None
        if status is not None and status.cidrs:
            return tuple(
                CidrRecord(cidr=each.cidr, gateway=each.gateway, draining=each.draining)
                for each in status.cidrs
            )
        if asked := self.asked():
            return tuple(
                CidrRecord(cidr=cidr, gateway=gateway, draining=cidr in asked.draining)
                for cidr, gateway in zip(asked.cidrs, asked.gateways, strict=True)
            )
        stated = (
            [status.cidr] if status is not None and status.cidr else sorted(filter(None, self.sums.cidrs))
        )
        return tuple(CidrRecord(cidr=cidr, gateway="", draining=False) for cidr in stated)

    def ranges(self) -> tuple[MapRange, ...]:
        """The same for the map; what is not a range is left out."""
        found = (map_range(each.cidr, each.gateway, is_draining=each.draining) for each in self.cidrs())
        return tuple(each for each in found if each is not None)

    def kept_back(self) -> frozenset[int]:
        """What the subnet's definition keeps back by itself: only the allocator knows it."""
        asked = self.asked()
        if asked is None:
            return frozenset()
        kept = {number for each in asked.keep_back if (number := address_number(each)) is not None}
        left = min(asked.keep_back_first, _MOST_KEPT_BACK)
        for each in self.ranges():
            address = each.first + 1
            while left and address < each.last:
                if address != each.gateway:
                    kept.add(address)
                    left -= 1
                address += 1
        return frozenset(kept)


def thresholds_of(source: SubnetSources, default: Thresholds | None) -> Thresholds | None:
    """The thresholds t and T in force, by the ClusterSubnet; where there is none, those of the controller's settings, if known."""
    in_force = source.subnet.status.thresholds if source.subnet else None
    return default if in_force is None else Thresholds(exact(in_force.lower), exact(in_force.upper))


def subnet_record(source: SubnetSources, thresholds: Thresholds | None, family: int) -> SubnetRecord:
    """The record of a subnet of which anything tells."""
    sums, asked = source.sums, source.asked()
    subnet = source.subnet if source.subnet is not None and source.subnet.is_judged else None
    status = subnet.status if subnet else None
    scaler = status.scaler if status else None
    capacity = asked.capacity if asked else status.capacity if status else None
    reserved = None
    if asked is not None:
        reserved = asked.reserved
    elif status is not None:
        reserved = max(status.reserved, sums.taken)
    condition = run_out_in(status) if status else None
    full = next((each for each in status.conditions if each.type == FULL), None) if status else None
    return SubnetRecord(
        name=source.name,
        cidrs=source.cidrs(),
        capacity=capacity,
        reserved=reserved,
        free=None if capacity is None or reserved is None else max(0, capacity - reserved),
        owed=sums.owed,
        quarantined=asked.quarantined if asked else None,
        nodes=sums.nodes,
        pods=sums.demand if sums.stating else None,
        idle=sums.idle if sums.stating else None,
        batch=scaler.batch if scaler else None,
        buffer=scaler.buffer if scaler else None,
        top=scaler.top if scaler else None,
        exhausted=status.exhausted if status else source.is_state_exhausted,
        starved=status.starved if status else False,
        full=None if full is None else full.status == ConditionStatus.TRUE,
        thresholds=ThresholdsRecord(lower=float(thresholds.lower), upper=float(thresholds.upper))
        if thresholds
        else None,
        reason=_reason(asked, source.subnet),
        runs_out=RunsOutRecord(status=condition.status, message=condition.message) if condition else None,
        family=family,
    )


def _reason(asked: Subnet | None, subnet: ClusterSubnet | None) -> str:
    """Why the batch is as it is. The allocator quotes the numbers of the last change, so that this is said along with it."""
    if subnet is not None and (words := batch_reason(subnet.status)):
        return words
    if asked is None or not asked.in_force.reason:
        return ""
    return f"the last change ({asked.in_force.step or 'the first decision'}): {asked.in_force.reason}"
