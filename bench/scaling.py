"""How many requests can be decided per second."""

from collections.abc import Iterator
from fractions import Fraction
from time import perf_counter

from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request

PART = "core"
DECISIONS = 200_000


def measure() -> Iterator[tuple[str, str]]:
    """Decide for every demand from 0 to 250, over and over."""
    scaler = Scaler(16, Fraction(1, 2))
    start = perf_counter()
    for number in range(DECISIONS):
        decide_request(number % 251, scaler, 1)
    yield "scaling decisions", f"{DECISIONS / (perf_counter() - start):,.0f}/s"
