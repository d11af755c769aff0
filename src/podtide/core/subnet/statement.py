"""What a node says its request was computed from, and what that tells about requests by another batch.

A request is a step function of demand: many demands lead to the same one. So a request alone, read back, names a window
of demands. A statement names the demand itself, with the parameters it was put through:

    h(U, B)     what a container takes from the subnet at rest: its primary, and request(U, B)
    U⁻ … U⁺     the demands that lead to the same request by the stated parameters

While the batch in force is below the top one, nodes state anew what changed (see `statement_refresh`), and the stated
demand is exact. At the top, where nodes do not write for that, it is anywhere in the window. For agents that state
nothing (Azure CNS, and podtide before statements) the window follows from their request and the scaler they were shown.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import lru_cache
from math import floor

from msgspec import Struct

from podtide.core.exact import text
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler, SubnetScaler
from podtide.core.subnet.scaling import decide_request, share_of


class Statement(Struct, frozen=True, kw_only=True):
    """The inputs that a request was computed from. It is valid for that request only."""

    demand: int
    batch: int
    buffer: Fraction
    max_ips: int
    primaries: int
    request: int
    number: int = 0
    """Grows with every statement of a node: of two beside one generation of the request, the higher is the newer."""
    top: int = 0
    """The top rung that the node compared with; 0 when it knows of none, and then it does not state its demand anew."""

    @property
    def scaler(self) -> Scaler:
        """The parameters as the formula takes them."""
        return Scaler(self.batch, self.buffer, self.max_ips)

    @property
    def is_consistent(self) -> bool:
        """Whether the request follows from the other fields. An inconsistent statement would mislead every cluster."""
        return request_at(self.demand, self.scaler, self.primaries) == self.request


class StatedDemand(Struct, frozen=True, kw_only=True):
    """What is known of a container's demand: the part of a statement that decides which batches fit."""

    low: int = 0
    """U⁻"""
    high: int = 0
    """U⁺"""
    demand: int | None = None
    """The demand itself, where the node states it anew when it changes; None where only the window is known."""
    batch: int = 0
    """The batch it follows; 0 for a container whose agent has asked for nothing yet."""
    buffer: str = "0"
    """Its buffer, as exact text (see `core.exact`): this struct is kept in a database and travels as JSON."""
    max_ips: int = DEFAULT_MAX_IPS
    primaries: int = 1
    """As the node deducts them: 0 for Azure CNS."""
    of_two: bool = False
    """Whether the node has a container in another subnet too, whose batch may be the smaller one."""

    @property
    def is_empty(self) -> bool:
        """Whether its agent has asked for nothing yet: it holds its primary, whatever the batch."""
        return self.batch == 0


def request_at(demand: int, scaler: Scaler, primaries: int) -> int:
    """What each container of a node is asked to hold; the node's family has as many containers as primaries."""
    return share_of(decide_request(demand, scaler, primaries).request, primaries, scaler.max_ips)


def taken_at(demand: int, stated: StatedDemand, rung: SubnetScaler) -> int:
    """h(U, B): what the container takes from the subnet at rest by a rung."""
    return _taken_at(demand, rung.batch, rung.buffer, stated.max_ips, stated.primaries)


@lru_cache(maxsize=65_536)
def _taken_at(demand: int, batch: int, buffer: Fraction, max_ips: int, primaries: int) -> int:
    return 1 + request_at(demand, Scaler(min(batch, max_ips), buffer, max_ips), primaries)


def stated_demand(statement: Statement, *, of_two: bool = False) -> StatedDemand:
    """The demand that a statement gives."""
    low, high = demand_window(statement)
    return StatedDemand(
        low=low,
        high=high,
        demand=statement.demand if statement.batch < statement.top else None,
        batch=statement.batch,
        buffer=text(statement.buffer),
        max_ips=statement.max_ips,
        primaries=statement.primaries,
        of_two=of_two,
    )


def inferred_demand(request: int, shown: Scaler, *, of_two: bool = False) -> StatedDemand:
    """The demand that a request without a statement implies, for an agent that was shown these parameters.

    Azure CNS keeps m ≤ free < M, whether it steps by a batch (v1) or computes its request (v2), and deducts no
    primary; podtide before statements deducted one. At its maximum a node may lack any number. A request of 0 says
    that nothing was asked for yet.
    """
    if request <= 0:
        return StatedDemand(max_ips=shown.max_ips, of_two=of_two)
    low = max(0, floor(request - shown.maximum_free) + 1)
    high = max(low, floor(request + 1 - shown.minimum_free))
    return StatedDemand(
        low=min(low, shown.max_ips),
        high=shown.max_ips if request >= shown.max_ips else min(high, shown.max_ips),
        batch=shown.batch,
        buffer=text(shown.buffer),
        max_ips=shown.max_ips,
        primaries=0,
        of_two=of_two,
    )


def demand_window(statement: Statement) -> tuple[int, int]:
    """U⁻ and U⁺. Demand beyond the node's maximum changes no request, so the window ends there."""
    return _window(
        statement.demand, statement.batch, statement.buffer, statement.max_ips, statement.primaries
    )


@lru_cache(maxsize=4_096)
def _window(demand: int, batch: int, buffer: Fraction, max_ips: int, primaries: int) -> tuple[int, int]:
    scaler = Scaler(batch, buffer, max_ips)

    def request(of: int) -> int:
        return request_at(of, scaler, primaries)

    demands = range(max_ips + 1)
    asked = request(demand)
    return bisect_left(demands, asked, key=request), bisect_right(demands, asked, key=request) - 1
