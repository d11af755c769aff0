"""How many addresses a node asks for: one step, whatever the burst.

    aligned = B·⌈mf + U/B⌉
    request = min(max, max(aligned - P, U + (1 if mf > 0 else 0)))

The request depends only on demand and on the parameters in force, never on the last request: asking again changes
nothing, and an edit out of band heals in one step. P, the primaries a node's containers hold, is deducted so that
what the node takes from the subnet in all is a multiple of the batch. The floor acts only where that deduction would
leave no free address (B = 1 with a primary, for one), the cap only at the node's maximum.

All arithmetic is in integers: ⌈mf + U/B⌉ is exact for every fraction mf.
"""

from enum import StrEnum

from msgspec import Struct

from podtide.core.errors import InvalidScaler
from podtide.core.exact import text
from podtide.core.subnet.scaler import Scaler


class RequestBound(StrEnum):
    """The part of the formula that decided."""

    FORMULA = "formula"
    FLOOR = "floor"
    MAX = "max"


class RequestDecision(Struct, frozen=True):
    """A request with all of its terms, so that log, Event, command line and page say the same."""

    request: int
    bound: RequestBound
    aligned: int
    floor: int
    demand: int
    primaries: int
    scaler: Scaler

    @property
    def free(self) -> int:
        """Addresses the node will hold beyond its demand."""
        return max(0, self.request - self.demand)

    @property
    def short(self) -> int:
        """Pods that will find no address because the node's maximum is lower than its demand."""
        return max(0, self.demand - self.request)

    @property
    def arithmetic(self) -> str:
        """The part of the formula that decided, with its numbers in it."""
        batch, buffer = self.scaler.batch, text(self.scaler.buffer)
        return {
            RequestBound.FORMULA: f"{batch}·⌈{buffer} + {self.demand}/{batch}⌉ - {self.primaries}",
            RequestBound.FLOOR: f"demand {self.demand} + {self.floor - self.demand} kept free",
            RequestBound.MAX: f"the node's maximum, {max(self.aligned - self.primaries, self.floor)} wanted",
        }[self.bound]

    def __str__(self) -> str:
        rest = f"{self.short} short" if self.short else f"{self.free} free"
        return f"request {self.request} = {self.arithmetic}; demand {self.demand}, {rest}"

    def steps(self) -> tuple[str, ...]:
        """The formula with its numbers in it, line by line."""
        batch, most, kept = self.scaler.batch, self.scaler.max_ips, self.floor - self.demand
        aligned = f"{batch}·⌈{text(self.scaler.buffer)} + {self.demand}/{batch}⌉"
        terms = f"min({most}, max({self.aligned} - {self.primaries}, {self.demand} + {kept}))"
        thresholds = (
            f"m = mf·B = {text(self.scaler.minimum_free)}, M = (mf + 1)·B = {text(self.scaler.maximum_free)}"
        )
        return (
            f"aligned = B·⌈mf + U/B⌉ = {aligned} = {self.aligned}",
            f"request = min(max, max(aligned - P, U + {kept})) = {terms} = {self.request}",
            f"free    = request - U = {self.request} - {self.demand} = {self.request - self.demand}",
            f"thresholds: {thresholds}",
        )


def decide_request(demand: int, scaler: Scaler, primaries: int = 0) -> RequestDecision:
    """What a node with `demand` pods in need of an address asks for."""
    if demand < 0:
        raise InvalidScaler(f"demand {demand} is negative: it is a count of pods, 0 or more")
    if primaries < 0:
        raise InvalidScaler(
            f"{primaries} primaries is negative: it is a count of network containers, 0 or more"
        )
    batch, parts, whole = scaler.batch, scaler.buffer.numerator, scaler.buffer.denominator
    aligned = batch * -(-(parts * batch + demand * whole) // (whole * batch))
    floor = demand + (1 if parts else 0)
    wanted, bound = aligned - primaries, RequestBound.FORMULA
    if wanted < floor:
        wanted, bound = floor, RequestBound.FLOOR
    if wanted > scaler.max_ips:
        wanted, bound = scaler.max_ips, RequestBound.MAX
    return RequestDecision(wanted, bound, aligned, floor, demand, primaries, scaler)


def share_of(request: int, containers: int, max_ips: int) -> int:
    """What each of several containers of one family must hold, so that together they hold what the node asks for."""
    return min(-(-request // containers), max_ips // containers) if containers > 1 else request


def to_release(held: int, named: int, request: int) -> int:
    """How many more addresses to name for release.

    Counted against what the node holds, never against its last request, so that nothing is released twice and a
    request that was never granted releases nothing.
    """
    return max(0, held - named - request)
