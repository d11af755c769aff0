"""What a subnet's containers would take by another batch: R⁻ and R⁺ for each rung, from counts of statements.

    R⁻(B) = F + Σ h(U⁻, B)        R⁺(B) = F + Σ h(U⁺, B)

F is what no batch governs: addresses in quarantine, and reserved ones that are in no node's pool. The sums go over
distinct statements with their counts, not over containers, so that they cost the same for fifty nodes as for five
thousand.

A container has answered the batch in force once it states it (or a smaller one, where its node's other subnet, or the
exhaustion it was told of, asks for that). One that has not answered in time may be a dead agent's, which gives nothing
back: it counts with no less than it holds or asks for, or the batch would oscillate on addresses that a dead agent
never releases. One that has answered and still holds more than it asks for cannot give that back yet (its agent lost
its records, for one): in time it counts with that surplus at every rung, or others would keep a batch that there is no
room for.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from podtide.core.subnet.scaler import EXHAUSTED_BATCH, EXHAUSTED_BUFFER, SubnetScaler, request_percent
from podtide.core.subnet.statement import StatedDemand, taken_at


class ContainerDemand(Struct, frozen=True):
    """One container in the counts: what is known of its demand, and what it takes of the subnet now."""

    stated: StatedDemand
    taken: int
    """Its primary, and what it holds or asks for, whichever is more."""


ContainerDemandCounts = Mapping[ContainerDemand, int]
"""How many containers of a subnet are alike."""


class ReservedRange(Struct, frozen=True):
    """R⁻ and R⁺: the least and the most that would be reserved."""

    least: int
    most: int


class PodRange(Struct, frozen=True):
    """Σ U⁻ and Σ U⁺: the least and the most pods that need an address."""

    least: int
    most: int


class SubnetDemand(Struct, frozen=True, kw_only=True):
    """The demand of all containers of a subnet at one instant, given the batch in force."""

    holdings: ContainerDemandCounts
    ungoverned: int
    """F."""
    in_force: SubnetScaler
    top: int
    exhausted: bool
    is_overdue: bool
    """Whether the time to answer the batch in force is over."""

    @property
    def unanswered(self) -> int:
        """Containers that do not state the batch in force yet."""
        return sum(count for holding, count in self.holdings.items() if not self.has_answered(holding.stated))

    def has_answered(self, stated: StatedDemand) -> bool:
        """Whether a container's statement was made with the parameters in force."""
        if stated.is_empty:
            return True
        if stated.batch == min(self.in_force.batch, stated.max_ips):
            # Percent, because by way of a NodeNetworkConfig a buffer arrives so.
            stated_percent = request_percent(_exact_buffer(stated.buffer))
            return stated_percent == request_percent(self.in_force.buffer) or stated.of_two
        if stated.of_two and stated.batch < self.in_force.batch:
            return True
        told = stated.batch == EXHAUSTED_BATCH and _exact_buffer(stated.buffer) == EXHAUSTED_BUFFER
        return told and self.exhausted

    def at(self, rung: SubnetScaler) -> ReservedRange:
        """R⁻ and R⁺ once every container follows the rung."""
        least = most = self.ungoverned
        for holding, count in self.holdings.items():
            low, high = self._taken(holding, rung)
            least += low * count
            most += high * count
        return ReservedRange(least, most)

    @property
    def pods(self) -> PodRange:
        """How many pods need an address."""
        least = most = 0
        for holding, count in self.holdings.items():
            low, high = self.window(holding.stated)
            least += low * count
            most += high * count
        return PodRange(least, most)

    def window(self, stated: StatedDemand) -> tuple[int, int]:
        """U⁻ and U⁺ of a container."""
        return window_of(stated, self.in_force.batch, self.top)

    def _taken(self, holding: ContainerDemand, rung: SubnetScaler) -> tuple[int, int]:
        stated = holding.stated
        if stated.is_empty:
            return holding.taken, max(holding.taken, taken_at(0, stated, rung))
        low, high = self.window(stated)
        taken = taken_at(low, stated, rung), taken_at(high, stated, rung)
        if not self.is_overdue:
            return taken
        if not self.has_answered(stated):
            return max(taken[0], holding.taken), max(taken[1], holding.taken)
        surplus = _surplus(holding)
        return taken[0] + surplus, taken[1] + surplus


def window_of(stated: StatedDemand, in_force: int, top: int) -> tuple[int, int]:
    """U⁻ and U⁺ by a statement, with that batch in force.

    It is the demand itself where the node states it anew when it changes: it does so below the top rung.
    """
    is_exact = stated.batch == min(in_force, stated.max_ips) and in_force < top
    if stated.demand is not None and is_exact:
        return stated.demand, stated.demand
    return stated.low, stated.high


def _surplus(holding: ContainerDemand) -> int:
    """What a container takes beyond what follows from its statement."""
    stated = holding.stated
    own = SubnetScaler(stated.batch, _exact_buffer(stated.buffer))
    return max(0, holding.taken - taken_at(stated.high, stated, own))


@lru_cache(maxsize=1024)
def _exact_buffer(written: str) -> Fraction:
    """The buffer of a statement. All nodes state one of a few, and reading it anew would take most of the time."""
    return Fraction(written)
