"""What a subnet's pods need of it, as far as the nodes' statements tell: demand, true need, on pods, and idle.

Nodes do not tell which of their addresses are on pods. They state how many pods need an address, and at the top batch only
between which two numbers that is (U⁻ and U⁺, see `statement`). All four figures are by U⁺:

    demand      Σ U⁺: at most as many pods need an address
    need        R⁺ at batch 1, by the configured buffer: at most as many addresses would be reserved
    on pods     Σ U⁺, and no more than containers hold: at most as many are on pods
    idle        what containers hold for pods beyond that: at least as many are idle

So need is what remains of R if every node kept only what its pods and its buffer take. It is R⁺ and not R⁻ because of what
is read off it: whether a subnet has room with batch 1, and until when. By R⁻ the answer could be later than the truth, and
by the same R⁺ the batch in force is decided (`fits`). Below the top batch statements are exact, and R⁻ = R⁺.

What dead agents hold beyond their statement is not in it: pods do not need that.
"""

from collections.abc import Iterable
from fractions import Fraction

from msgspec import Struct

from podtide.core.subnet.demand_by_batch import SubnetDemand
from podtide.core.subnet.scaler import DEFAULT_BUFFER, EXHAUSTED_BATCH, EXHAUSTED_BUFFER, SubnetScaler


class DemandReading(Struct, frozen=True):
    """What a subnet's pods need at one instant."""

    demand: int
    need: int
    on_pods: int
    idle: int


def smallest_scaler(buffers: Iterable[Fraction]) -> SubnetScaler:
    """Batch 1 with the smallest buffer that a cluster has configured; the default where none has.

    At batch 1 more than one free address would be kept for nothing, so the buffer is 1 at most.
    """
    return SubnetScaler(EXHAUSTED_BATCH, min(min(buffers, default=DEFAULT_BUFFER), EXHAUSTED_BUFFER))


def read_demand(subnet: SubnetDemand, smallest: SubnetScaler, held: int) -> DemandReading:
    """The reading, for a subnet whose containers hold so many addresses for pods, primaries not among them."""
    demand = subnet.pods.most
    on_pods = min(demand, held)  # what is owed is on no pod
    return DemandReading(demand, subnet.at(smallest).most, on_pods, held - on_pods)
